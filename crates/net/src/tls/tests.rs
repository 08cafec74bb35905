use tokio::net::TcpListener;

use super::*;

struct Files {
    certificate: std::path::PathBuf,
    key: std::path::PathBuf,
}

fn files(name: &str) -> Files {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let directory = std::env::temp_dir();
    let unique = format!("telpher-tls-{}-{name}", std::process::id());
    let certificate = directory.join(format!("{unique}.pem"));
    let key = directory.join(format!("{unique}.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Files { certificate, key }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.certificate);
        let _ = std::fs::remove_file(&self.key);
    }
}

async fn read_exact(source: &mut dyn Source, count: usize) -> Vec<u8> {
    let mut found = vec![0; count];
    crate::read_exact(source, &mut found).await.unwrap();
    found
}

async fn write_all(sink: &dyn Sink, bytes: &[u8]) {
    crate::write_all(sink, bytes).await.unwrap();
}

#[tokio::test]
async fn megabytes_pass_through_tls_in_both_directions() {
    let files = files("pass");
    let server = load_server_config(&files.certificate, &files.key).unwrap();
    let client = client_config(Some(&files.certificate)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        let mut stream = split_tls_accepted(listener.accept().await.unwrap().0, server).unwrap();
        let received = read_exact(&mut *stream.source, 3 << 20).await;
        write_all(&*stream.sink, &received).await;
        stream
    });
    let socket = crate::connect_tcp("127.0.0.1", port).await.unwrap();
    let Stream {
        mut source, sink, ..
    } = split_tls_connected(socket, "localhost", client)
        .await
        .unwrap();
    let sent: Vec<u8> = (0..3 << 20).map(|i: u32| i as u8).collect();
    let copy = sent.clone();
    let writer = sink.clone();
    let writing = tokio::spawn(async move { write_all(&*writer, &copy).await });
    assert!(read_exact(&mut *source, 3 << 20).await == sent);
    writing.await.unwrap();
    accepting.await.unwrap();
}

/// Bytes of a file that is not one of the system.
struct Readable(Vec<u8>);

impl crate::FileBytes for Readable {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn descriptor(&self) -> Option<(std::os::fd::BorrowedFd<'_>, u64)> {
        None
    }

    fn read_at(&self, buffer: &mut [u8], at: usize) -> io::Result<()> {
        buffer.copy_from_slice(&self.0[at..at + buffer.len()]);
        Ok(())
    }
}

#[tokio::test]
async fn shared_bytes_and_bytes_of_files_are_encrypted_in_order() {
    let tls = SharedSeedTls::new(&[7; 32]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let content =
        |seed: u8| -> Vec<u8> { (0..2_000_000).map(|at| seed ^ (at % 251) as u8).collect() };
    let (file, shared) = (content(3), content(80));
    let expected = [b"head", &file[..], b"mid", &shared, b"tail"].concat();
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = split_tls_accepted(socket, tls.server).unwrap();
        read_exact(&mut *stream.source, 1).await;
        let outbox = crate::Outbox::new(stream.sink.clone());
        outbox.push_output(|out| {
            out.buffer().extend_from_slice(b"head");
            out.push_file(Box::new(Readable(file)));
            out.buffer().extend_from_slice(b"mid");
            out.push_shared(shared.into());
            out.buffer().extend_from_slice(b"tail");
        });
        outbox.flush();
        std::future::poll_fn(|cx| match outbox.poll_drain(cx) {
            Poll::Pending if outbox.queued_size() > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        (stream, outbox)
    });
    let socket = TcpStream::connect(address).await.unwrap();
    let stream = split_tls_connected(socket, "node", tls.client).await;
    let mut stream = stream.unwrap();
    write_all(&*stream.sink, b"!").await;
    assert!(read_exact(&mut *stream.source, expected.len()).await == expected);
    serving.await.unwrap();
}

#[tokio::test]
async fn untrusted_certificate_fails_the_connect() {
    let files = files("distrust");
    let server = load_server_config(&files.certificate, &files.key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        let mut stream = split_tls_accepted(listener.accept().await.unwrap().0, server).unwrap();
        let mut buffer = [0; 16];
        std::future::poll_fn(|cx| stream.source.poll_read(cx, &mut buffer)).await
    });
    let socket = crate::connect_tcp("127.0.0.1", port).await.unwrap();
    let trusting_nobody = client_config(None).unwrap();
    let error = split_tls_connected(socket, "localhost", trusting_nobody)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(accepting.await.unwrap().is_err());
}

#[test]
fn missing_certificate_file_is_named() {
    let error = load_server_config(Path::new("/nowhere.pem"), Path::new("/nowhere.key"));
    assert!(error.unwrap_err().to_string().contains("/nowhere.pem"));
}

/// Connects with one seed to a listener with another, exchanges a message and its answer, and
/// returns the first error of the client.
async fn exchange(client: [u8; 32], server: [u8; 32]) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = SharedSeedTls::new(&server).unwrap();
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = split_tls_accepted(socket, tls.server).unwrap();
        let mut buffer = [0; 5];
        let read = std::future::poll_fn(|cx| stream.source.poll_read(cx, &mut buffer)).await?;
        write_all(&*stream.sink, &buffer[..read]).await;
        Ok::<_, io::Error>(read)
    });
    let socket = TcpStream::connect(address).await?;
    let tls = SharedSeedTls::new(&client).unwrap();
    let connected = split_tls_connected(socket, "node", tls.client).await;
    let Ok(mut stream) = connected else {
        assert!(serving.await.unwrap().is_err(), "the server read something");
        return connected.map(|_| ());
    };
    write_all(&*stream.sink, b"hello").await;
    let answer = read_exact(&mut *stream.source, 5).await;
    assert_eq!(answer, b"hello");
    assert_eq!(serving.await.unwrap()?, 5);
    Ok(())
}

#[tokio::test]
async fn processes_with_one_seed_exchange_bytes() {
    exchange([7; 32], [7; 32]).await.unwrap();
}

#[tokio::test]
async fn another_seed_fails_the_handshake_on_both_sides() {
    let mut other = [7; 32];
    other[31] = 8;
    let error = exchange(other, [7; 32]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[tokio::test]
async fn a_certificate_is_no_seed() {
    let files = files("seed");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = SharedSeedTls::new(&[7; 32]).unwrap();
    let serving = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = split_tls_accepted(socket, tls.server).unwrap();
        std::future::poll_fn(|cx| stream.source.poll_read(cx, &mut [0; 1])).await
    });
    let socket = TcpStream::connect(address).await.unwrap();
    let config =
        load_mutual_client_config(Some(&files.certificate), &files.certificate, &files.key);
    let connected = split_tls_connected(socket, "localhost", config.unwrap()).await;
    assert!(connected.is_err(), "a certificate was accepted");
    assert!(serving.await.unwrap().is_err());
}
