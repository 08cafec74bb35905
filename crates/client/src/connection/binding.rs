//! `Binding`: name and method behind a route number, and the references of requests to it.
//!
//! Most requests of a thread use the same binding as the request before, which has ended by then. A
//! finished request therefore leaves its reference to the next one: a reference count shared
//! between CPUs costs more than the rest of decoding a request.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use crate::connection::port::Port;

/// Name and method behind a route number, and the connection's output.
pub(crate) struct Binding {
    pub(crate) method: Box<str>,
    /// Subscribed name; empty on a direct connection.
    pub(crate) name: Box<str>,
    pub(crate) port: Arc<Port>,
}

thread_local! {
    /// Reference left by the last request on this thread.
    static SPARE: Cell<Option<Arc<Binding>>> = const { Cell::new(None) };
}

/// A reference to a binding.
#[derive(Clone)]
pub(crate) struct BindingRef(
    /// Always `Some` until it is dropped.
    Option<Arc<Binding>>,
);

impl BindingRef {
    #[inline]
    pub(crate) fn to(binding: &Arc<Binding>) -> Self {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        Self(Some(match spare {
            Some(spare) if Arc::ptr_eq(&spare, binding) => spare,
            _ => binding.clone(),
        }))
    }
}

impl Deref for BindingRef {
    type Target = Binding;

    fn deref(&self) -> &Binding {
        match &self.0 {
            Some(binding) => binding,
            None => unreachable!("a reference refers until it is dropped"),
        }
    }
}

impl Drop for BindingRef {
    #[inline]
    fn drop(&mut self) {
        if let Some(binding) = self.0.take() {
            // When the thread ends, the reference is dropped.
            let _ = SPARE.try_with(|spare| spare.set(Some(binding)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(method: &str) -> Arc<Binding> {
        let window = wire::Window {
            frame_size_max: 1,
            calls_max: 1,
            credit_messages: 1,
            credit_bytes: 1,
            keepalive_ms: 0,
        };
        Arc::new(Binding {
            method: method.into(),
            name: "".into(),
            port: Arc::new(Port::new(&window)),
        })
    }

    #[test]
    fn references_point_to_their_own_binding() {
        let (one, two) = (binding("one"), binding("two"));
        for _ in 0..3 {
            let first = BindingRef::to(&one);
            let second = BindingRef::to(&two);
            let copy = first.clone();
            assert_eq!((&*first.method, &*second.method), ("one", "two"));
            drop(first);
            assert_eq!(&*copy.method, "one");
        }
    }

    #[test]
    fn a_thread_keeps_one_binding_at_most() {
        let (one, two) = (binding("one"), binding("two"));
        drop((
            BindingRef::to(&one),
            BindingRef::to(&one),
            BindingRef::to(&two),
        ));
        let kept = |binding: &Arc<Binding>| Arc::strong_count(binding) - 1;
        assert_eq!(kept(&one) + kept(&two), 1);
        drop(BindingRef::to(&one));
        assert_eq!((kept(&one), kept(&two)), (1, 0));
        // Another thread's reference ends where it is dropped.
        let (there, sent) = (BindingRef::to(&two), two.clone());
        let ended = std::thread::spawn(move || {
            drop(there);
            Arc::strong_count(&sent) > 2
        });
        assert!(ended.join().unwrap());
        assert_eq!(kept(&two), 0);
    }
}
