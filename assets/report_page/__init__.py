"""The report of a data set: one page of figures, plots and samples, and a prompt for a reviewer.

::

    samples.py   a few documents of every rule, personal data masked
    figures.py   what the page and the prompt say, taken from the catalog's rows
    visible.py   what can be seen of a page
    meanings.py  what every rule means
    markup.py    escaping, numbers, tables
    charts.py    bars and histograms as inline SVG
    tables.py    losses, stages, sources, languages
    plots.py     lengths, frequent tokens
    page.py      the page
    prompt.py    the prompt for a model-assisted review of the data
    write.py     both files
"""
