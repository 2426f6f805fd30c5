"""Tell little stories from a grammar: what the story model was trained on (chapter 13).

Every story has one trade, one guest and one mishap, and its later sentences
need its earlier ones: the name, the pronoun, the goods, the place. Only the
surname follows from nothing. It is drawn from sixteen equally likely ones, so
that no model, however good, can be sure of it, and one where the largest
logit wins has to flip a coin.
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["SURNAMES", "opening", "openings", "story"]

SURNAMES = (
    "Baker Bell Brown Cook Fox Green Hill Lake Marsh Miller Page Reed Smith Stone Wood "
    "Young"
).split()


class Trade(NamedTuple):
    """What somebody of a trade makes, and where."""

    verb: str
    goods: str
    place: str


TRADES = {
    "baker": Trade("baked", "bread cakes rolls pies cookies", "shop bakery"),
    "beekeeper": Trade("sold", "honey candles wax syrup sweets", "hut cabin"),
    "carpenter": Trade("built", "chairs tables beds shelves doors", "workshop shed"),
    "farmer": Trade("picked", "corn apples potatoes carrots pumpkins", "farm barn"),
    "fisherman": Trade("caught", "fish crabs eels mussels shrimps", "boat cabin"),
    "gardener": Trade("grew", "roses tulips beans peas herbs", "cottage shed"),
    "painter": Trade("painted", "pictures signs masks fans eggs", "studio house"),
    "potter": Trade("shaped", "bowls cups pots plates jars", "workshop house"),
    "shoemaker": Trade("made", "shoes boots sandals slippers belts", "shop workshop"),
    "tailor": Trade("sewed", "coats hats shirts gloves scarves", "shop house"),
    "toymaker": Trade("carved", "dolls kites drums puppets tops", "shop cottage"),
    "weaver": Trade("wove", "blankets rugs baskets ribbons curtains", "hut cottage"),
}

SETTINGS = "small lovely quiet little pretty sleepy sunny busy".split()
PLACES = "village town valley harbor hamlet".split()
WATERS = "river sea lake pond brook forest".split()
SIZES = "small big tiny cozy bright warm clean plain".split()
PARTS = "kitchen garden window roof chimney cellar yard door gate fence".split()
DAYS = "morning evening day week night".split()
SHARES = (
    "sold them at the market",
    "gave some to the neighbors",
    "put them in the window",
    "took them to the school",
    "carried them to the square",
    "kept the best for the children",
)
SEASONS = "spring summer autumn winter".split()
LOOKS = "white black brown gray thin young shy funny spotted fluffy".split()
GUESTS = {
    "dog": "barked",
    "cat": "hissed",
    "bird": "chirped",
    "mouse": "squeaked",
    "goat": "bleated",
    "duck": "quacked",
    "fox": "yelped",
    "frog": "croaked",
    "owl": "hooted",
    "horse": "neighed",
    "pig": "grunted",
    "bear": "growled",
}
NEEDS = {
    "hungry": "cooked a bowl of soup",
    "cold": "lit a warm fire",
    "lost": "drew a careful map",
    "tired": "made a soft bed of straw",
    "sad": "sang a merry song",
    "wet": "brought a dry towel",
    "lonely": "told a long story",
    "thirsty": "poured a cup of fresh milk",
    "sick": "stirred a spoon of sweet medicine",
}
STORMS = "wind rain snow thunder hail".split()
HIDDEN = "key ring purse watch letter coin".split()
SPOTS = "under the carpet|behind the stove|in the hay|near the well|below the stairs"
FEELINGS = "happy glad proud thankful pleased".split()
COLORS = "red blue green yellow golden silver purple pink".split()
GIFTS = "hat bell scarf pillow ball bowl basket lantern".split()
FRIENDS = "best good dear close true".split()


class _Cast(NamedTuple):
    """What the sentences of one story have in common."""

    trade: str
    title: str
    surname: str
    place: str
    part: str
    guest: str
    need: str

    @property
    def name(self) -> str:
        return f"{self.title}. {self.surname}"

    @property
    def he(self) -> str:
        return "he" if self.title == "Mr" else "she"

    @property
    def his(self) -> str:
        return "his" if self.title == "Mr" else "her"


def opening(setting: str, place: str, water: str, trade: str) -> str:
    """Return the words before a name, 15 of them and a comma.

    Examples
    --------
    >>> opening("small", "village", "river", "baker")
    'Once upon a time in a small village by the river, there was a baker'
    """
    return (
        f"Once upon a time in a {setting} {place} by the {water}, there was a {trade}"
    )


def openings(trades: Sequence[str] = tuple(TRADES)) -> Iterator[str]:
    """Yield the opening of every setting, place, water and trade.

    Examples
    --------
    >>> len(list(openings(["baker"])))
    240
    """
    for trade in trades:
        for setting in SETTINGS:
            for place in PLACES:
                for water in WATERS:
                    yield opening(setting, place, water, trade)


def story(dice: random.Random) -> str:
    """Return one story.

    Parameters
    ----------
    dice : random.Random
        Where chance comes from; the same seed tells the same story.

    Examples
    --------
    >>> story(random.Random(3)).split(", there was ")[0]
    'Once upon a time in a ...'
    """
    setting, place, water = (_pick(dice, x) for x in (SETTINGS, PLACES, WATERS))
    cast = _cast(dice)
    mishap = _pick(dice, (_storm, _thief, _search))
    sentences = (
        f"{opening(setting, place, water, cast.trade)} named {cast.name}.",
        *_work(dice, cast),
        *_visit(dice, cast),
        *mishap(dice, cast),
        *_ending(dice, cast, f"{setting} {place} by the {water}"),
    )
    return " ".join(sentences)


def _pick(dice: random.Random, choices: Sequence):
    # `random` is the one method whose numbers never change between versions.
    return choices[int(dice.random() * len(choices))]


def _cast(dice: random.Random) -> _Cast:
    trade = _pick(dice, tuple(TRADES))
    return _Cast(
        trade=trade,
        title="Mr" if dice.random() < 0.6 else "Mrs",
        surname=_pick(dice, SURNAMES),
        place=_pick(dice, TRADES[trade].place.split()),
        part=_pick(dice, PARTS),
        guest=_pick(dice, tuple(GUESTS)),
        need=_pick(dice, tuple(NEEDS)),
    )


def _work(dice: random.Random, cast: _Cast) -> Iterator[str]:
    trade, he = TRADES[cast.trade], cast.he
    goods = trade.goods.split()
    first = _pick(dice, goods)
    second = _pick(dice, [x for x in goods if x != first])
    size, other = _pick(dice, SIZES), _pick(dice, SIZES)
    yield f"{he.title()} had a {size} {cast.place} with a {other} {cast.part}."
    yield (
        f"Every {_pick(dice, DAYS)} {he} {trade.verb} {first} and {second} "
        f"and {_pick(dice, SHARES)}."
    )


def _visit(dice: random.Random, cast: _Cast) -> Iterator[str]:
    season, look = _pick(dice, SEASONS), _pick(dice, LOOKS)
    guest, he = cast.guest, cast.he
    time = _pick(dice, [x for x in DAYS if x != "week"])
    yield f"One {season} {time} a {look} {guest} came to the {cast.place}."
    yield f"“Please help me,” said the {guest}. “I am so {cast.need}.”"
    yield f"{cast.name} smiled at the {look} {guest}, and {he} {NEEDS[cast.need]}."
    yield f"Soon the {guest} was not {cast.need} anymore."


def _storm(dice: random.Random, cast: _Cast) -> Iterator[str]:
    storm = _pick(dice, STORMS)
    yield f"That night the {storm} was terrible, and it broke the {cast.part}."
    yield (
        f"The {cast.guest} called all of its friends, and together they mended the "
        f"{cast.part} before the sun came up."
    )


def _thief(dice: random.Random, cast: _Cast) -> Iterator[str]:
    yield f"That night a thief crept through the {cast.part}."
    yield (
        f"The {cast.guest} woke up and {GUESTS[cast.guest]} so loudly that the thief "
        f"ran away and never came back to the {cast.place}."
    )


def _search(dice: random.Random, cast: _Cast) -> Iterator[str]:
    thing, spot = _pick(dice, HIDDEN), _pick(dice, SPOTS.split("|"))
    yield f"The next day {cast.name} lost {cast.his} {thing} and could not find it."
    yield f"The {cast.guest} looked everywhere and found the {thing} {spot}."


def _ending(dice: random.Random, cast: _Cast, where: str) -> Iterator[str]:
    feeling, friends = _pick(dice, FEELINGS), _pick(dice, FRIENDS)
    color, gift = _pick(dice, COLORS), _pick(dice, GIFTS)
    yield (
        f"{cast.name} was so {feeling} that {cast.he} gave the {cast.guest} a {color} "
        f"{gift}."
    )
    yield (
        f"From that day on the {cast.trade} and the {cast.guest} were {friends} "
        f"friends, and they lived together in the {where}."
    )
    yield "The end."
