//! The functions of a server, by method.
//!
//! A handler is shared by every connection; each connection that uses it has its own runner, so
//! that nothing is locked on the way to the function. A runner keeps the memory of the last future
//! that ended at once and uses it for the next: a handler that never waits allocates nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use futures_util::future::OptionFuture;
use model::ErrorCode;

use super::item_sender::ItemSender;
use super::request::Request;
use crate::Fault;

/// What a handler answers.
pub(crate) type Answer = Result<Bytes, Fault>;

/// A handler that waits for something.
pub(crate) type Job = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// What became of a request when its handler was first polled.
pub(crate) enum Run {
    Done(Answer),
    Later(Job),
}

pub(crate) trait Handler: Send + Sync {
    /// A runner for one route of one connection.
    fn runner(&self) -> Box<dyn Runner>;
}

pub(crate) trait Runner: Send {
    /// Whether the handler wants an [`ItemSender`].
    fn streams(&self) -> bool {
        false
    }

    /// Starts the handler. `items` is there if the handler streams.
    fn run(
        &mut self,
        request: Request,
        items: Option<ItemSender>,
        cx: &mut TaskContext<'_>,
    ) -> Run;
}

/// Handlers by method, looked up when a route is bound.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_method: BTreeMap<Box<str>, Arc<dyn Handler>>,
}

impl Handlers {
    pub(crate) fn insert(&mut self, method: &str, handler: Arc<dyn Handler>) {
        self.by_method.insert(method.into(), handler);
    }

    pub(crate) fn methods(&self) -> Vec<&str> {
        self.by_method.keys().map(AsRef::as_ref).collect()
    }

    /// A runner, or the answer to every use of a method that is not there.
    pub(crate) fn runner(&self, method: &str) -> Result<Box<dyn Runner>, Fault> {
        match self.by_method.get(method) {
            Some(handler) => Ok(handler.runner()),
            None => Err(self.unknown(method)),
        }
    }

    fn unknown(&self, method: &str) -> Fault {
        let known = self.by_method.keys().map(AsRef::as_ref);
        let nearest = match model::nearest(method, known) {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => ";".to_owned(),
        };
        let message = match self.by_method.len() {
            0 => format!("no handler `{method}`: the server has none at all"),
            1 => format!("no handler `{method}`{nearest} 1 handler known"),
            count => format!("no handler `{method}`{nearest} {count} handlers known"),
        };
        Fault::with_code(ErrorCode::UnknownMethod, message)
    }
}

/// `async` functions.
pub(crate) struct AsyncHandler<F>(Arc<F>);

impl<F> AsyncHandler<F> {
    pub(crate) fn new(function: F) -> Self {
        Self(Arc::new(function))
    }
}

impl<F, Fut> Handler for AsyncHandler<F>
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(AsyncRunner {
            function: self.0.clone(),
            spare: None,
        })
    }
}

struct AsyncRunner<F, Fut> {
    function: Arc<F>,
    /// Memory for a future, empty.
    spare: Option<Pin<Box<OptionFuture<Fut>>>>,
}

impl<F, Fut> Runner for AsyncRunner<F, Fut>
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn run(&mut self, request: Request, _: Option<ItemSender>, cx: &mut TaskContext<'_>) -> Run {
        let future = OptionFuture::from(Some((self.function)(request)));
        let mut slot = match self.spare.take() {
            Some(mut spare) => {
                spare.as_mut().set(future);
                spare
            }
            None => Box::pin(future),
        };
        match slot.as_mut().poll(cx) {
            Poll::Pending => Run::Later(slot),
            Poll::Ready(answer) => {
                slot.as_mut().set(OptionFuture::from(None));
                self.spare = Some(slot);
                Run::Done(answer.unwrap_or_else(|| Ok(Bytes::new())))
            }
        }
    }
}

/// Plain functions.
pub(crate) struct SyncHandler<F>(Arc<F>);

impl<F> SyncHandler<F> {
    pub(crate) fn new(function: F) -> Self {
        Self(Arc::new(function))
    }
}

impl<F> Handler for SyncHandler<F>
where
    F: Fn(Request) -> Answer + Send + Sync + 'static,
{
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(SyncRunner(self.0.clone()))
    }
}

struct SyncRunner<F>(Arc<F>);

impl<F> Runner for SyncRunner<F>
where
    F: Fn(Request) -> Answer + Send + Sync + 'static,
{
    fn run(&mut self, request: Request, _: Option<ItemSender>, _: &mut TaskContext<'_>) -> Run {
        Run::Done((self.0)(request))
    }
}

/// `async` functions that answer with any number of items.
pub(crate) struct StreamHandler<F>(Arc<F>);

impl<F> StreamHandler<F> {
    pub(crate) fn new(function: F) -> Self {
        Self(Arc::new(function))
    }
}

impl<F, Fut> Handler for StreamHandler<F>
where
    F: Fn(Request, ItemSender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(StreamRunner(self.0.clone()))
    }
}

struct StreamRunner<F>(Arc<F>);

impl<F, Fut> Runner for StreamRunner<F>
where
    F: Fn(Request, ItemSender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn streams(&self) -> bool {
        true
    }

    fn run(
        &mut self,
        request: Request,
        items: Option<ItemSender>,
        cx: &mut TaskContext<'_>,
    ) -> Run {
        let Some(items) = items else {
            let message = format!("`{}` answers with a stream: use `stream`", request.method());
            return Run::Done(Err(Fault::with_code(ErrorCode::InvalidArgument, message)));
        };
        let mut job = Box::pin(OptionFuture::from(Some((self.0)(request, items))));
        match job.as_mut().poll(cx) {
            Poll::Pending => Run::Later(job),
            Poll::Ready(answer) => Run::Done(answer.unwrap_or_else(|| Ok(Bytes::new()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_is_told_the_nearest_and_how_many_there_are() {
        let mut handlers = Handlers::default();
        let echo = |request: Request| Ok(request.body);
        for method in ["echo", "reverse", "sum"] {
            handlers.insert(method, Arc::new(SyncHandler::new(echo)));
        }
        let fault = handlers.runner("eco").err().unwrap();
        assert_eq!(fault.code, ErrorCode::UnknownMethod);
        assert_eq!(
            fault.message,
            "no handler `eco`; did you mean `echo`? 3 handlers known"
        );
        let fault = handlers.runner("something else").err().unwrap();
        assert_eq!(fault.message, "no handler `something else`; 3 handlers known");
    }
}
