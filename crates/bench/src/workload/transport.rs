//! Transport between the processes of a case.

/// Transport between caller and callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `tcp://` on loopback.
    Tcp,
    /// `unix://`.
    Unix,
    /// In-process transport: caller and callee share a thread.
    Inproc,
}

impl Transport {
    /// Returns the transport's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Inproc => "inproc",
        }
    }
}
