//! What the engine knows of a message.

mod stub;

pub use stub::Stub;

/// How a message ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// As its author meant it to.
    #[default]
    Complete = 0,
    /// The author or the node was lost while it was streamed; what had come is kept.
    Interrupted = 1,
    /// The author gave it up while it was streamed.
    Aborted = 2,
    /// Somebody asked for it to stop while it was streamed.
    Stopped = 3,
}

impl Status {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [
        Self::Complete,
        Self::Interrupted,
        Self::Aborted,
        Self::Stopped,
    ];

    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its published name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
            Self::Stopped => "stopped",
        }
    }
}

/// What a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PartKind {
    /// Text.
    Text = 0,
    /// What a model thought before it answered.
    Reasoning = 1,
    /// A call of a tool, without its result.
    ToolCall = 2,
    /// The result of a call that stands elsewhere.
    ToolResult = 3,
    /// A call together with its result, or a call whose result will never stand elsewhere.
    ToolPair = 4,
    /// A file, an image.
    File = 5,
    /// A source that is quoted.
    Source = 6,
    /// Data for an application.
    Data = 7,
    /// Anything else.
    Other = 8,
}

impl PartKind {
    /// All of them, by number.
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

/// What the engine knows of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFact {
    /// What it is.
    pub kind: PartKind,
    /// Bytes of the part as it stands in the message.
    pub size: u32,
    /// Which call it belongs to ([`call_hash`]); 0 for none.
    pub call: u64,
    /// How large what stands for it is when it is old.
    pub stub: Stub,
}

/// How a message ended, and when it was first appended, if that was elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original {
    /// How it ended.
    pub status: Status,
    /// In milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<u64>,
}

/// A message that is to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// What its author calls it; `None` if the node makes the id.
    pub id: Option<&'a str>,
    /// What its author is in the conversation: `user`, `assistant`, `system`, `tool`, …
    pub role: &'a str,
    /// Who wrote it, empty for nobody in particular.
    pub from: &'a str,
    /// What it costs a model, if the author knows.
    pub tokens: Option<u32>,
    /// One for each part, in order.
    pub facts: &'a [PartFact],
    /// The parts, opaque.
    pub parts: &'a [u8],
    /// Opaque.
    pub metadata: &'a [u8],
}

impl NewMessage<'_> {
    /// What it costs a model, and whether that is an estimate.
    pub fn tokens(&self) -> (u32, bool) {
        match self.tokens {
            Some(tokens) => (tokens, false),
            None => (estimated_tokens(self.parts.len()), true),
        }
    }
}

/// Whether messages of that role instruct a model instead of talking to it.
pub(crate) fn is_instructing(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// What so many bytes of parts cost a model if nobody says: a token for every 4 bytes begun, at
/// least one.
pub fn estimated_tokens(size: usize) -> u32 {
    u32::try_from(size.div_ceil(4).max(1)).unwrap_or(u32::MAX)
}

/// A call's id as the engine knows it, the same on every machine and for ever (FNV-1a, 64 bit);
/// never 0.
pub fn call_hash(id: &str) -> u64 {
    model::fnv1a_64(id.bytes()).max(1)
}
