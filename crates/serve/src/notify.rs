//! Notifications to the service manager that started the process, as systemd's `Type=notify-reload`
//! wants them. Without one, nothing happens.

use sd_notify::NotifyState;

/// Tells that the node serves clients.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Tells that the configuration is read again. [`ready`] ends that.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot tell the service manager of the reload"),
    }
}

/// Tells that the node ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager (NOTIFY_SOCKET)");
    }
}
