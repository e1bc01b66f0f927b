"""An observer that posts lifecycle events of topologies to a web service."""

from __future__ import annotations

from heron_observer_webhook.observer import Webhook

__all__ = ["Webhook"]
