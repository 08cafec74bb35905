//! `Description`: what an agent says about itself and its methods.

use std::sync::Arc;

use wire::{DescribedMethod, DescribedMethods};

/// A description of an agent, for people, models and gateways. The node keeps it as long as an
/// instance that gave it is subscribed, and shows that of the newest version.
///
/// ```
/// use telpher_client::{Description, Method};
///
/// let sum = Description::new()
///     .version("1.2.0")
///     .text("Adds numbers.")
///     .method(
///         Method::new("add")
///             .text("Returns the sum of the numbers.")
///             .input(r#"{"type": "array", "items": {"type": "number"}}"#)
///             .output(r#"{"type": "number"}"#),
///     );
/// # let _ = sum;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    version: String,
    text: String,
    methods: Vec<Method>,
}

/// A method of a [`Description`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    name: String,
    is_streamed: bool,
    text: String,
    input: String,
    output: String,
}

impl Description {
    /// Creates an empty description.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version of the agent, for example `1.2.0`; at most 255 bytes.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets what the agent does.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Adds a method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.methods.push(method);
        self
    }

    /// Returns the description as it is sent; `buffer` holds its methods.
    fn encode<'a>(&'a self, buffer: &'a mut Vec<u8>) -> wire::Description<'a> {
        let methods = self.methods.iter().map(|method| DescribedMethod {
            name: &method.name,
            is_streamed: method.is_streamed,
            text: &method.text,
            input: &method.input,
            output: &method.output,
        });
        wire::Description {
            version: &self.version,
            text: &self.text,
            methods: DescribedMethods::encode(methods, buffer),
        }
    }
}

impl Method {
    /// Creates a method with this name, which is empty for plain messages.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Sets what the method does.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// States that the method answers with items.
    #[must_use]
    pub fn streamed(mut self) -> Self {
        self.is_streamed = true;
        self
    }

    /// Sets the JSON Schema of a request's body, as JSON text.
    #[must_use]
    pub fn input(mut self, schema: impl Into<String>) -> Self {
        self.input = schema.into();
        self
    }

    /// Sets the JSON Schema of the answer, or of one item, as JSON text.
    #[must_use]
    pub fn output(mut self, schema: impl Into<String>) -> Self {
        self.output = schema.into();
        self
    }
}

/// Encodes a SUBSCRIBE.
pub(crate) fn encode_subscribe(
    options: u8,
    name: &str,
    description: Option<&Arc<Description>>,
    correlation: wire::Correlation,
    out: &mut Vec<u8>,
) {
    let mut buffer = Vec::new();
    let subscribe = wire::Subscribe {
        options,
        name,
        description: description.map(|it| it.encode(&mut buffer)),
    };
    subscribe.encode(correlation, out);
}
