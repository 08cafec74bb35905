//! `CallOptions`: deadline, retries and metadata of a call, and the methods that set them.

use wire::TRACEPARENT;

use crate::state::clock::Timeout;
use crate::state::core::Core;
use crate::state::exchange::{WaitLimits, WhenFull};
use crate::{Context, Metadata, RetryPolicy};

/// Options of one call, or of each of many calls.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) timeout: Timeout,
    pub(crate) when_full: WhenFull,
    pub(crate) metadata: Metadata,
    pub(crate) retry: Option<RetryPolicy>,
}

impl CallOptions {
    pub(crate) fn new(core: &Core) -> Self {
        Self {
            timeout: core.options.deadline,
            when_full: WhenFull::Wait,
            metadata: Metadata::new(),
            retry: None,
        }
    }

    pub(crate) fn limits(&self) -> WaitLimits {
        WaitLimits {
            when_full: self.when_full,
            ..WaitLimits::new(self.timeout)
        }
    }

    /// Limits the deadline to that of the request being handled, and copies its trace context.
    pub(crate) fn inherit(&mut self, context: &Context) {
        if let Some(remaining) = context.deadline_remaining() {
            let remaining = Timeout::new(Some(remaining));
            self.timeout = self.timeout.min(remaining);
        }
        for key in [TRACEPARENT, wire::TRACESTATE] {
            if let Some(value) = context.metadata().get(key) {
                self.add_metadata(key, value);
            }
        }
    }

    /// Adds one metadata entry.
    pub(crate) fn add_metadata(&mut self, key: &str, value: impl AsRef<[u8]>) {
        let metadata = std::mem::take(&mut self.metadata);
        self.metadata = metadata.with(key, value);
    }
}

/// Writes the builder methods that are named, each with its documentation, for a type that has
/// [`CallOptions`] in the field (or the field of a field) at the beginning.
macro_rules! option_methods {
    ($($field:ident).+:) => {};
    ($($field:ident).+: $(#[$doc:meta])* deadline; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn deadline(mut self, deadline: impl Into<Option<std::time::Duration>>) -> Self {
            self.$($field).+.timeout = $crate::state::clock::Timeout::new(deadline.into());
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
    ($($field:ident).+: $(#[$doc:meta])* within; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn within(mut self, context: &$crate::Context) -> Self {
            self.$($field).+.inherit(context);
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
    ($($field:ident).+: $(#[$doc:meta])* retry; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn retry(mut self, policy: $crate::RetryPolicy) -> Self {
            self.$($field).+.retry = Some(policy);
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
    ($($field:ident).+: $(#[$doc:meta])* when_full; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn when_full(mut self, when_full: $crate::WhenFull) -> Self {
            self.$($field).+.when_full = when_full;
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
    ($($field:ident).+: $(#[$doc:meta])* metadata; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn metadata(mut self, metadata: $crate::Metadata) -> Self {
            self.$($field).+.metadata = metadata;
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
    ($($field:ident).+: $(#[$doc:meta])* traceparent; $($rest:tt)*) => {
        $(#[$doc])*
        pub fn traceparent(mut self, traceparent: &str) -> Self {
            self.$($field).+.add_metadata(wire::TRACEPARENT, traceparent);
            self
        }
        option_methods!($($field).+: $($rest)*);
    };
}
pub(crate) use option_methods;
