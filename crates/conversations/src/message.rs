//! Messages and the facts about them that the engine uses.

mod stub;

pub use stub::Stub;

/// The way a message ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The author completed it.
    #[default]
    Complete = 0,
    /// The author or the node was lost during streaming; the chunks received until then are the
    /// message.
    Interrupted = 1,
    /// The author aborted it during streaming.
    Aborted = 2,
    /// A stop was requested during streaming.
    Stopped = 3,
}

impl Status {
    /// All statuses, by number.
    pub const ALL: [Self; 4] = [
        Self::Complete,
        Self::Interrupted,
        Self::Aborted,
        Self::Stopped,
    ];

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the published name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
            Self::Stopped => "stopped",
        }
    }
}

/// The kind of a message part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PartKind {
    /// Text.
    Text = 0,
    /// Reasoning of a model before its answer.
    Reasoning = 1,
    /// A tool call without its result.
    ToolCall = 2,
    /// The result of a tool call in another part.
    ToolResult = 3,
    /// A tool call together with its result, or a call that will never have a separate result.
    ToolPair = 4,
    /// A file, an image.
    File = 5,
    /// A cited source.
    Source = 6,
    /// Application data.
    Data = 7,
    /// Any other kind.
    Other = 8,
}

impl PartKind {
    /// All kinds, by number.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Reasoning,
        Self::ToolCall,
        Self::ToolResult,
        Self::ToolPair,
        Self::File,
        Self::Source,
        Self::Data,
        Self::Other,
    ];

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The facts about a part that the engine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFact {
    /// The kind.
    pub kind: PartKind,
    /// The size of the part in the message, in bytes.
    pub size: u32,
    /// The tool call that the part belongs to ([`call_hash`]); 0 for none.
    pub call: u64,
    /// The size of the stub that can replace the part when it is old.
    pub stub: Stub,
}

/// The status and the original time of a message that was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original {
    /// The way the message ended.
    pub status: Status,
    /// The time of the original append, in milliseconds since 1970-01-01 UTC; `None` if it is
    /// appended here first.
    pub at_ms: Option<u64>,
}

/// A message to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// The author's id for the message; `None` if the node generates one.
    pub id: Option<&'a str>,
    /// The author's role: `user`, `assistant`, `system`, `tool`, …
    pub role: &'a str,
    /// The author; empty if not named.
    pub from: &'a str,
    /// The cost in tokens, if the author knows it.
    pub tokens: Option<u32>,
    /// The facts, one per part, in order.
    pub facts: &'a [PartFact],
    /// The parts, as opaque bytes.
    pub parts: &'a [u8],
    /// The metadata, as opaque bytes.
    pub metadata: &'a [u8],
}

impl NewMessage<'_> {
    /// Returns the cost in tokens, and whether it is an estimate.
    pub fn tokens(&self) -> (u32, bool) {
        match self.tokens {
            Some(tokens) => (tokens, false),
            None => (estimated_tokens(self.parts.len()), true),
        }
    }
}

/// Returns whether messages with that role are instructions for the model.
pub(crate) fn is_instructing(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// Returns the estimated cost of parts of that size: one token per 4 bytes, rounded up, at least
/// one.
pub fn estimated_tokens(size: usize) -> u32 {
    u32::try_from(size.div_ceil(4).max(1)).unwrap_or(u32::MAX)
}

/// Returns the hash of a tool call's id (FNV-1a, 64 bit), which is stored and so never changes;
/// never 0.
pub fn call_hash(id: &str) -> u64 {
    model::fnv1a_64(id.bytes()).max(1)
}
