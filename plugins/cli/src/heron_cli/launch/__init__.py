"""Brings a topology from the author's file to its scheduler."""
