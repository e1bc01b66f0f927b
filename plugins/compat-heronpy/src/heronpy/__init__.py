"""The package of Apache Heron's Python API, served by Heron for Python.

Programs import its modules by their full paths; each hands on the names of `heron.api`, and what differs is said in
the module that differs. Streamlets are refused.
"""
