"""The app: `magnet_lab` in the browser, one page an idea."""
