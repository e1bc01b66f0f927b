"""Builds the documentation site: pages from the repository's documents, reference from docstrings.

``./dev docs`` runs it. The documents stay where they are. Links between them work in the repository and in the site.
"""
