//! Races between callees.

use client::{Caller, ErrorCode, Fault, Server, race};

use crate::support::{Gate, bounded, echo, inproc, over_every_transport};

#[tokio::test]
async fn the_first_success_wins_and_the_losers_are_dropped() {
    let gate = Gate::new();
    let failing = Server::new().handle("wait", |_: client::Request| async {
        Err::<&str, _>(Fault::new("never well"))
    });
    let winner = Server::new().handle("wait", |request: client::Request| async move {
        tokio::task::yield_now().await;
        Ok(request.body)
    });
    bounded(over_every_transport(&winner, async |winning: Caller| {
        let before = gate.entered.count();
        let slow = gate.on(Server::new()).listen(&inproc()).await.unwrap();
        let failing = failing.listen(&inproc()).await.unwrap();
        let callers = [
            Caller::connect(failing.address()).await.unwrap(),
            Caller::connect(slow.address()).await.unwrap(),
            winning,
            Caller::connect(slow.address()).await.unwrap(),
        ];
        let (index, reply) = race(&callers, "wait", "x").await.unwrap();
        assert_eq!((index, &reply[..]), (2, &b"x"[..]));
        // A losing handler that had started was dropped; one that had not never runs.
        for caller in [&callers[1], &callers[3]] {
            let error = caller.call("missing", "").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::UnknownMethod);
        }
        let begun = gate.entered.count();
        assert!(begun <= before + 2);
        gate.left.reaches(begun).await;
    }))
    .await;
}

#[tokio::test]
async fn when_all_fail_the_race_returns_the_last_error() {
    bounded(async {
        let gate = Gate::new();
        let late = {
            let gate = gate.clone();
            Server::new().handle("x", move |_: client::Request| {
                let gate = gate.clone();
                async move {
                    gate.pass().await;
                    Err::<&str, _>(Fault::new("the last"))
                }
            })
        };
        let late = late.listen(&inproc()).await.unwrap();
        let early = echo().listen(&inproc()).await.unwrap();
        let callers = [
            Caller::connect(late.address()).await.unwrap(),
            Caller::connect(early.address()).await.unwrap(),
        ];
        let release = async {
            gate.entered.reaches(1).await;
            gate.unblock(1);
        };
        let (outcome, ()) = tokio::join!(race(&callers, "x", ""), release);
        assert_eq!(outcome.unwrap_err().message, "the last");
        let nobody: [Caller; 0] = [];
        let error = race(&nobody, "x", "").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    })
    .await;
}

#[tokio::test]
async fn dropping_a_race_drops_every_handler() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate
            .on(Server::new())
            .listen("tcp://127.0.0.1:0")
            .await
            .unwrap();
        let callers = [
            Caller::connect(listening.address()).await.unwrap(),
            Caller::connect(listening.address()).await.unwrap(),
        ];
        {
            let mut running = std::pin::pin!(race(&callers, "wait", ""));
            assert!(futures_util::poll!(&mut running).is_pending());
            gate.entered.reaches(2).await;
            assert_eq!(gate.left.count(), 0);
        }
        gate.left.reaches(2).await;
    })
    .await;
}
