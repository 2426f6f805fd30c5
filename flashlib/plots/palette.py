"""Name the colors of every figure once (book).

Okabe and Ito's palette for readers who confuse red and green, with a purple, a red and
grays beside it. Matplotlib figures take these values as they are; `flashlib.plots.svg`
offers them as defaults that the style sheet of the page may replace in dark mode.
"""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
YELLOW = "#E69F00"
PURPLE = "#AA4499"
RED = "#B3123B"
DARK = "#555555"
GRAY = "#8A8A8A"
FAINT = "#DDDDDD"
