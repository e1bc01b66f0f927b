"""The matrix of hostile arguments: every call of authors, with every argument that Python allows, in every place."""
