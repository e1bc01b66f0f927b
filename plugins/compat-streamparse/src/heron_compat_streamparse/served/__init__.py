"""The folder with the modules of the served packages, which is on `sys.path` in processes that use them.

All imports here are absolute, so a served package has its submodules as attributes by their paths in this distribution.
"""
