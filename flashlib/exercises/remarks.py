"""Answers to what an exercise asks for besides code, shown with its solution (book)."""

REMARKS = {
    "15.3": (
        "The loop over the pieces of $K$ is the innermost one, because their products "
        "add up in one window of PSUM, and a window is done with when the last piece "
        "has come. With $M$ or $N$ innermost every window of that loop has to stay "
        "open until then. PSUM has room for eight; beyond that a window has to be "
        "copied out after every piece and added up by another engine."
    ),
    "16.3": (
        "The ridge compares peaks: it takes every cycle of the square for one that "
        "multiplies a full column. The sum of the weights takes cycles of the same "
        "square and adds next to no operations, and so does the floor of 64 when fewer "
        "columns move. So the square is busy for as long as the load takes with fewer "
        "columns than the ridge says."
    ),
    "19.3": (
        "The counts from 1 to $n - 1$ give $n(n - 1)$ bands, one for each start. The "
        "empty band and the full one are the same from every start: $n(n - 1) + 2$ in "
        "all, one more than {eq}`eq-ch19-count` had."
    ),
    "21.3": (
        "Two cores share the slots evenly, and the border may fall inside a page: "
        "three pages for two cores are a page and a half for each. Half of a table is "
        "a number of whole pages. Blocks are finer, so they are numbered first and "
        "shared out then."
    ),
    "22.3": (
        "With one maximum for all parts, the sum and the numerator of a part are sums "
        "over its keys, and addition and the maximum are associative and commutative, "
        "so that (up to rounding) the totals do not know where the row was cut. A part "
        "that is empty or hidden brings the identities, $-\\infty$ for the maximum and "
        "0 for both sums, and changes nothing."
    ),
    "23.3": (
        "Eight heads that share keys and values have a query and an output each, and "
        "load a key and a value once for all. If all four are of one size, a row of "
        "one head costs $2 + 2/8$ parts in place of 4, so its time falls to 9/16. The "
        "products of a head stay as they are, and per row they grow with the number of "
        "keys: they overtake the traffic at little more than half as many keys."
    ),
}
