//! `service!`: declares a service as a Rust trait.

/// Declares a service: a trait to implement, and a client that calls it.
///
/// Arguments and replies are any types that `serde` supports. They are sent as [`MessagePack`]
/// under the method `Trait.function`. An implementation gets a [`Context`] with each call and may
/// return a [`Fault`]. A call accepts a deadline, a retry policy and so on like any other call.
///
/// [`MessagePack`]: crate::MessagePack
/// [`Context`]: crate::Context
/// [`Fault`]: crate::Fault
///
/// ```
/// use telpher_client::{Caller, Context, Fault, Server, service};
///
/// service! {
///     /// Sums and quotients.
///     pub trait Calculator, client CalculatorClient {
///         /// `a` and `b` together.
///         async fn add(a: i64, b: i64) -> i64;
///         /// How often `b` is in `a`.
///         async fn divide(a: i64, b: i64) -> i64;
///     }
/// }
///
/// struct Abacus;
///
/// impl Calculator for Abacus {
///     async fn add(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
///         Ok(a + b)
///     }
///
///     async fn divide(&self, _: Context, a: i64, b: i64) -> Result<i64, Fault> {
///         a.checked_div(b).ok_or_else(|| Fault::new("division by zero"))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Abacus.register(Server::new());
/// let listening = server.listen("tcp://127.0.0.1:0").await?;
///
/// let calculator = CalculatorClient::new(Caller::connect(listening.address()).await?);
/// assert_eq!(calculator.add(2, 3).await?, 5);
/// let error = calculator.divide(1, 0).await.unwrap_err();
/// assert_eq!(error.message, "division by zero");
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! service {
    (
        $(#[$service_meta:meta])*
        $vis:vis trait $service:ident, client $client:ident {
            $(
                $(#[$meta:meta])*
                async fn $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $reply:ty)?;
            )*
        }
    ) => {
        $(#[$service_meta])*
        $vis trait $service: Sized + Send + Sync + 'static {
            $(
                $(#[$meta])*
                fn $method(
                    &self,
                    context: $crate::Context,
                    $($argument: $type),*
                ) -> impl ::std::future::Future<
                    Output = ::std::result::Result<$crate::service!(@reply $($reply)?), $crate::Fault>,
                > + Send;
            )*

            /// Adds the methods of this service to a server.
            fn register(self, server: $crate::Server) -> $crate::Server {
                let service = ::std::sync::Arc::new(self);
                $(
                    let server = server.handle_typed(
                        $crate::MessagePack,
                        $crate::service!(@name $service $method),
                        {
                            let service = service.clone();
                            move |context, ($($argument,)*): ($($type,)*)| {
                                let service = service.clone();
                                async move { service.$method(context, $($argument),*).await }
                            }
                        },
                    );
                )*
                drop(service);
                server
            }
        }

        #[doc = concat!("Client of the service [`", stringify!($service), "`].")]
        #[derive(Clone, Debug)]
        $vis struct $client {
            caller: $crate::Caller,
        }

        impl $client {
            /// Calls the service through `caller`.
            pub fn new(caller: $crate::Caller) -> Self {
                Self { caller }
            }

            $(
                $(#[$meta])*
                pub fn $method(
                    &self,
                    $($argument: $type),*
                ) -> $crate::TypedCall<'_, $crate::service!(@reply $($reply)?), $crate::MessagePack>
                {
                    let method = $crate::service!(@name $service $method);
                    self.caller.call_typed(method, &($($argument,)*))
                }
            )*
        }
    };
    (@reply) => { () };
    (@reply $reply:ty) => { $reply };
    (@name $service:ident $method:ident) => {
        concat!(stringify!($service), ".", stringify!($method))
    };
}
