//! Handler functions of a server, by method.
//!
//! All connections share a handler. Each connection has its own runner per handler, so that no lock
//! is needed to call the function. A runner reuses the memory of the last future that completed at
//! once: a handler that never waits allocates nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use model::ErrorCode;

use super::arrival::Arrival;
use super::borrowed::{BorrowedRequest, ReplyBody};
use super::item_sender::ItemSender;
use super::reply::Reply;
use super::request::Request;
use crate::Fault;

/// A handler in progress.
pub(crate) trait Job: Send {
    /// Polls the handler. Ready when `reply` has received the result.
    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>, reply: &mut Reply<'_>) -> Poll<()>;
}

/// A reusable slot for a future; `None` between two futures.
impl<Fut, B> Job for Option<Fut>
where
    Fut: Future<Output = Result<B, Fault>> + Send,
    B: AsRef<[u8]>,
{
    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>, reply: &mut Reply<'_>) -> Poll<()> {
        let Some(future) = self.as_pin_mut() else {
            return Poll::Ready(());
        };
        match future.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(answer) => {
                settle(&answer, reply);
                Poll::Ready(())
            }
        }
    }
}

/// Passes the result of a handler by reference, because it is encoded directly: returning it through
/// the layers would cost more than the encoding.
#[inline]
fn settle<B: AsRef<[u8]>>(answer: &Result<B, Fault>, reply: &mut Reply<'_>) {
    match answer {
        Ok(body) => reply.reply(body.as_ref()),
        Err(fault) => reply.refuse(fault),
    }
}

/// Runs the handler of one route on one connection.
pub(crate) trait Runner: Send {
    /// True if the handler takes an [`ItemSender`].
    fn streams(&self) -> bool {
        false
    }

    /// Starts the handler and polls it once. `items` is present if the handler streams. Returns the
    /// future if the handler is not complete.
    fn run(
        &mut self,
        arrival: &Arrival<'_>,
        items: Option<ItemSender>,
        cx: &mut TaskContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<Pin<Box<dyn Job>>>;
}

/// A registered handler: returns a runner for one route of one connection.
pub(crate) type Handler = dyn Fn() -> Box<dyn Runner> + Send + Sync;

/// Handlers by method, looked up when a route is bound.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_method: BTreeMap<Box<str>, Arc<Handler>>,
}

impl Handlers {
    pub(crate) fn insert(&mut self, method: &str, handler: Arc<Handler>) {
        self.by_method.insert(method.into(), handler);
    }

    pub(crate) fn methods(&self) -> Vec<&str> {
        self.by_method.keys().map(AsRef::as_ref).collect()
    }

    /// Returns a runner, or the error for an unknown method.
    pub(crate) fn runner(&self, method: &str) -> Result<Box<dyn Runner>, Fault> {
        match self.by_method.get(method) {
            Some(handler) => Ok(handler()),
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
            0 => format!("no handler `{method}`: the server has no handlers"),
            1 => format!("no handler `{method}`{nearest} 1 handler known"),
            count => format!("no handler `{method}`{nearest} {count} handlers known"),
        };
        Fault::with_code(ErrorCode::UnknownMethod, message)
    }
}

/// Registers an `async` function.
pub(crate) fn async_handler<F, Fut, B>(function: F) -> Arc<Handler>
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<B, Fault>> + Send + 'static,
    B: AsRef<[u8]> + 'static,
{
    let function = Arc::new(function);
    Arc::new(move || {
        Box::new(AsyncRunner {
            function: function.clone(),
            spare: None,
        })
    })
}

/// Registers a plain function.
pub(crate) fn sync_handler<F, B>(function: F) -> Arc<Handler>
where
    F: Fn(Request) -> Result<B, Fault> + Send + Sync + 'static,
    B: AsRef<[u8]> + 'static,
{
    let function = Arc::new(function);
    Arc::new(move || Box::new(SyncRunner(function.clone())))
}

/// Registers a plain function that borrows the request and writes the reply.
pub(crate) fn borrowing_handler<F>(function: F) -> Arc<Handler>
where
    F: Fn(BorrowedRequest<'_>, &mut ReplyBody<'_>) -> Result<(), Fault> + Send + Sync + 'static,
{
    let function = Arc::new(function);
    Arc::new(move || Box::new(BorrowingRunner(function.clone())))
}

/// Registers an `async` function that replies with any number of items.
pub(crate) fn stream_handler<F, Fut>(function: F) -> Arc<Handler>
where
    F: Fn(Request, ItemSender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move || Box::new(StreamRunner(function.clone())))
}

struct AsyncRunner<F, Fut> {
    function: Arc<F>,
    /// Memory of a future that has completed.
    spare: Option<Pin<Box<Option<Fut>>>>,
}

impl<F, Fut, B> Runner for AsyncRunner<F, Fut>
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<B, Fault>> + Send + 'static,
    B: AsRef<[u8]>,
{
    fn run(
        &mut self,
        arrival: &Arrival<'_>,
        _: Option<ItemSender>,
        cx: &mut TaskContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<Pin<Box<dyn Job>>> {
        let mut job = self.spare.take().unwrap_or_else(|| Box::pin(None));
        job.as_mut().set(Some((self.function)(arrival.request())));
        if job.as_mut().poll(cx, reply).is_pending() {
            return Some(job);
        }
        job.as_mut().set(None);
        self.spare = Some(job);
        None
    }
}

struct SyncRunner<F>(Arc<F>);

impl<F, B> Runner for SyncRunner<F>
where
    F: Fn(Request) -> Result<B, Fault> + Send + Sync + 'static,
    B: AsRef<[u8]>,
{
    fn run(
        &mut self,
        arrival: &Arrival<'_>,
        _: Option<ItemSender>,
        _: &mut TaskContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<Pin<Box<dyn Job>>> {
        settle(&(self.0)(arrival.request()), reply);
        None
    }
}

struct BorrowingRunner<F>(Arc<F>);

impl<F> Runner for BorrowingRunner<F>
where
    F: Fn(BorrowedRequest<'_>, &mut ReplyBody<'_>) -> Result<(), Fault> + Send + Sync + 'static,
{
    fn run(
        &mut self,
        arrival: &Arrival<'_>,
        _: Option<ItemSender>,
        _: &mut TaskContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<Pin<Box<dyn Job>>> {
        reply.write(|body| (self.0)(BorrowedRequest::new(arrival), body));
        None
    }
}

struct StreamRunner<F>(Arc<F>);

impl<F, Fut> Runner for StreamRunner<F>
where
    F: Fn(Request, ItemSender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Fault>> + Send + 'static,
{
    fn streams(&self) -> bool {
        true
    }

    fn run(
        &mut self,
        arrival: &Arrival<'_>,
        items: Option<ItemSender>,
        cx: &mut TaskContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<Pin<Box<dyn Job>>> {
        let Some(items) = items else {
            let message = format!(
                "`{}` streams its reply: call it with `stream`",
                arrival.method()
            );
            reply.refuse(&Fault::with_code(ErrorCode::InvalidArgument, message));
            return None;
        };
        let end = (self.0)(arrival.request(), items);
        let mut job = Box::pin(Some(async move { end.await.map(|()| []) }));
        match job.as_mut().poll(cx, reply) {
            Poll::Pending => Some(job),
            Poll::Ready(()) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_names_the_nearest_one_and_the_handler_count() {
        let mut handlers = Handlers::default();
        let echo = |request: Request| Ok(request.body);
        for method in ["echo", "reverse", "sum"] {
            handlers.insert(method, sync_handler(echo));
        }
        let fault = handlers.runner("eco").err().unwrap();
        assert_eq!(fault.code, ErrorCode::UnknownMethod);
        assert_eq!(
            fault.message,
            "no handler `eco`; did you mean `echo`? 3 handlers known"
        );
        let fault = handlers.runner("something else").err().unwrap();
        assert_eq!(
            fault.message,
            "no handler `something else`; 3 handlers known"
        );
    }
}
