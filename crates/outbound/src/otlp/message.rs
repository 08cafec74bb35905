//! The messages of OTLP that carry spans.
//!
//! Source: `opentelemetry/proto/trace/v1/trace.proto` and the files that it imports, version 1.
//! Fields that are not sent are left out.

use platform::{AttributeValue, EndedSpan, TraceContext};
use prost::Message;

/// Status code of a span that failed.
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct InstrumentationScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Link {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

impl ExportTraceServiceRequest {
    /// Returns a request with spans of the service of this name.
    pub(super) fn of(spans: &[EndedSpan], service: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let service = AttributeValue::Text(service.to_owned());
        let resource = Resource {
            attributes: vec![
                KeyValue::of("service.name", &service),
                KeyValue::of("service.version", &AttributeValue::Text(version.clone())),
            ],
        };
        let scope = InstrumentationScope {
            name: "telpher".to_owned(),
            version,
        };
        Self {
            resource_spans: vec![ResourceSpans {
                resource: Some(resource),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans: spans.iter().map(Span::of).collect(),
                }],
            }],
        }
    }
}

impl Span {
    fn of(span: &EndedSpan) -> Self {
        let attributes = span.attributes.iter();
        Self {
            trace_id: span.context.trace_id.to_be_bytes().to_vec(),
            span_id: span.context.span_id.to_be_bytes().to_vec(),
            parent_span_id: span
                .parent
                .map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
            name: span.name.clone(),
            kind: span.kind as i32,
            start_time_unix_nano: span.begin_unix_ns,
            end_time_unix_nano: span.end_unix_ns,
            attributes: attributes
                .map(|(key, value)| KeyValue::of(key, value))
                .collect(),
            links: span.links.iter().map(Link::of).collect(),
            status: span.error.as_ref().map(|reason| Status {
                message: reason.clone(),
                code: STATUS_ERROR,
            }),
        }
    }
}

impl Link {
    fn of(context: &TraceContext) -> Self {
        Self {
            trace_id: context.trace_id.to_be_bytes().to_vec(),
            span_id: context.span_id.to_be_bytes().to_vec(),
        }
    }
}

impl KeyValue {
    fn of(key: &str, value: &AttributeValue) -> Self {
        let value = match value {
            AttributeValue::Text(text) => Value::Text(text.clone()),
            AttributeValue::Number(number) => Value::Number(*number),
        };
        Self {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
        }
    }
}
