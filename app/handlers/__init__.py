"""What the pages do, without the pages: text in, plain data and figures out, a ValueError with a sentence on bad input.

Everything is computed by `magnet_lab`; here it is only asked for, checked and put into words. A file is a page's.
"""
