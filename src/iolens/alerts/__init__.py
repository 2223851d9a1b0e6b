"""Alerts: rules over results, their states from pending to resolved, silences, and notifications to receivers."""
