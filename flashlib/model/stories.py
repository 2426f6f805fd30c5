"""Tell little stories from a grammar: what the story model was trained on (chapter 13).

Every story has one trade, one guest and one mishap, and its later sentences
need its earlier ones: the name, the pronoun, the part of the house, the place.
What happens leans on how the story opened, so that another opening tells
another story. Only the surname leans on nothing. Sixteen are nearly equally
likely, Baker and Smith a little more than the others, so that no model,
however good, can be sure of it, and one where the largest logit wins has to
flip a coin.
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["SURNAMES", "opening", "openings", "story"]

SURNAMES = (
    "Baker Smith Bell Brown Cook Fox Green Hill Lake Marsh Miller Page Reed Stone Wood "
    "Young"
).split()
# Chances of the first two in units of those of any other.
LIKELIER = 1.4


class Trade(NamedTuple):
    """What somebody of a trade makes, and where."""

    verb: str
    goods: str
    house: str


TRADES = {
    "baker": Trade("baked", "bread cakes rolls pies cookies", "shop bakery"),
    "beekeeper": Trade("sold", "honey candles wax syrup sweets", "hut cabin"),
    "carpenter": Trade("built", "chairs tables beds shelves doors", "workshop shed"),
    "farmer": Trade("picked", "corn apples potatoes carrots pumpkins", "farm barn"),
    "fisher": Trade("caught", "fish crabs eels mussels shrimps", "boat cabin"),
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
NEIGHBORHOODS = tuple(f"{place} {water}" for water in WATERS for place in PLACES)
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

    setting: str
    place: str
    water: str
    trade: str
    title: str
    surname: str
    house: str
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
    cast = _cast(dice)
    begin = opening(cast.setting, cast.place, cast.water, cast.trade)
    mishap = _lean(dice, (_storm, _thief, _search), cast.setting, SETTINGS)
    sentences = (
        f"{begin} named {cast.name}.",
        *_work(dice, cast),
        *_visit(dice, cast),
        *mishap(dice, cast),
        *_ending(dice, cast),
    )
    return " ".join(sentences)


def _pick(dice: random.Random, choices: Sequence):
    # `random` is the one method whose numbers never change between versions.
    return choices[int(dice.random() * len(choices))]


def _lean(dice: random.Random, choices: Sequence, on: str, of: Sequence[str]):
    """Pick what belongs to the word `on` of the list `of` every second time."""
    if dice.random() < 0.5:
        return choices[list(of).index(on) % len(choices)]
    return _pick(dice, choices)


def _surname(dice: random.Random) -> str:
    bonus = LIKELIER - 1
    drawn = dice.random() * (len(SURNAMES) + 2 * bonus)
    if drawn < len(SURNAMES):
        return SURNAMES[int(drawn)]
    # Behind the units of all names lie what the first two have in addition.
    return SURNAMES[0 if drawn < len(SURNAMES) + bonus else 1]


def _cast(dice: random.Random) -> _Cast:
    setting, place, water = (_pick(dice, x) for x in (SETTINGS, PLACES, WATERS))
    trade = _pick(dice, tuple(TRADES))
    return _Cast(
        setting=setting,
        place=place,
        water=water,
        trade=trade,
        title=_lean(dice, ("Mr", "Mrs"), trade, tuple(TRADES)),
        surname=_surname(dice),
        house=_pick(dice, TRADES[trade].house.split()),
        part=_lean(dice, PARTS, trade, tuple(TRADES)),
        guest=_lean(dice, tuple(GUESTS), f"{place} {water}", NEIGHBORHOODS),
        need=_lean(dice, tuple(NEEDS), setting, SETTINGS),
    )


def _work(dice: random.Random, cast: _Cast) -> Iterator[str]:
    trade, he = TRADES[cast.trade], cast.he
    goods = trade.goods.split()
    first = _lean(dice, goods, cast.place, PLACES)
    others = [x for x in goods if x != first]
    second = _lean(dice, others, first, goods)
    size = _lean(dice, SIZES, cast.setting, SETTINGS)
    other = _pick(dice, [x for x in SIZES if x != size])
    yield f"{he.title()} had a {size} {cast.house} with a {other} {cast.part}."
    yield (
        f"Every {_pick(dice, DAYS)} {he} {trade.verb} {first} and {second} "
        f"and {_lean(dice, SHARES, cast.water, WATERS)}."
    )


def _visit(dice: random.Random, cast: _Cast) -> Iterator[str]:
    season = _lean(dice, SEASONS, cast.place, PLACES)
    look = _lean(dice, LOOKS, cast.guest, tuple(GUESTS))
    guest, he = cast.guest, cast.he
    time = _pick(dice, [x for x in DAYS if x != "week"])
    yield (
        f"One {season} {time} a {look} {guest} came from the {cast.water} to the "
        f"{cast.house}."
    )
    yield f"“Please help me,” said the {guest}. “I am so {cast.need}.”"
    yield f"{cast.name} smiled at the {look} {guest}, and {he} {NEEDS[cast.need]}."
    yield f"Soon the {guest} was not {cast.need} anymore."


def _storm(dice: random.Random, cast: _Cast) -> Iterator[str]:
    storm = _lean(dice, STORMS, cast.water, WATERS)
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
    thing = _lean(dice, HIDDEN, cast.water, WATERS)
    spot = _lean(dice, SPOTS.split("|"), thing, HIDDEN)
    yield f"The next day {cast.name} lost {cast.his} {thing} and could not find it."
    yield f"The {cast.guest} looked everywhere and found the {thing} {spot}."


def _ending(dice: random.Random, cast: _Cast) -> Iterator[str]:
    feeling = _lean(dice, FEELINGS, cast.need, tuple(NEEDS))
    friends = _pick(dice, FRIENDS)
    color = _lean(dice, COLORS, cast.water, WATERS)
    gift = _lean(dice, GIFTS, cast.guest, tuple(GUESTS))
    yield (
        f"{cast.name} was so {feeling} that {cast.he} gave the {cast.guest} a {color} "
        f"{gift}."
    )
    yield (
        f"From that day on the {cast.trade} and the {cast.guest} were {friends} "
        f"friends, and they lived together in the {cast.setting} {cast.place} by the "
        f"{cast.water}."
    )
    yield "The end."
