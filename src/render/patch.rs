//! Operations of addons on rendered resources.
