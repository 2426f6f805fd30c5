"""What the chapters try, count and work out, without a clock (book).

What is timed here, and what was timed once and written down, is in
`flashlib.measure`.
"""
