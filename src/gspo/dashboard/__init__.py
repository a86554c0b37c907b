"""The dashboard: run folders as a page, served on this machine or written to one file.

Never imports torch.
"""
