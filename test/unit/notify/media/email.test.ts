import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { portOf } from '../../../../sandbox/ports.ts';
import { until } from '../../../../sandbox/wait.ts';
import { createSend } from '../../../../src/notify/send.ts';
import type { Answer, Message, Sink } from '../../../../src/notify/sink.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { factOf, messageOf, nowMs, send, served, sinkOf } from './stage.ts';

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly secure: boolean;
  readonly user: string;
  /** With unfolded headers. */
  readonly head: string;
  readonly body: string;
}

describe('mail', () => {
  const servers: { close(): unknown }[] = [];
  let mails: Mail[];
  beforeEach(() => {
    mails = [];
  });
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function serve(options: SMTPServerOptions = {}): Promise<number> {
    const server = new SMTPServer({
      ...served,
      authOptional: true,
      onAuth: ({ username, password }, _, done) =>
        password === 'pass-word' ? done(null, { user: username }) : done(new Error('wrong pass-word')),
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const end = text.indexOf('\r\n\r\n');
          const { mailFrom, rcptTo } = session.envelope;
          mails.push({
            from: mailFrom ? mailFrom.address : '',
            to: rcptTo.map(({ address }) => address),
            secure: session.secure,
            user: String(session.user ?? ''),
            head: text.slice(0, end).replace(/\r\n[ \t]+/g, ' '),
            body: text.slice(end),
          });
          done(null, 'queued as 1');
        });
      },
      ...options,
    });
    servers.push(server);
    server.on('error', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    return portOf(server.server);
  }

  const mailSink = (port: number, scheme = 'smtp', rest: Partial<Sink> = {}): Sink =>
    sinkOf(`${scheme}://127.0.0.1:${port}`, {
      type: 'Email',
      sender: 'access@example.com',
      channel: 'sec@example.com, ops@example.com',
      ...rest,
    });
  const message = messageOf([factOf()]);
  const sendTo = (port: number, rest: Partial<Sink> = {}, to: Partial<Message> = {}): Promise<Answer> =>
    send(mailSink(port, 'smtp', rest), { ...message, ...to });
  const header = (name: string): string | undefined =>
    new RegExp(`^${name}: (.*)$`, 'im').exec(mails[0]?.head ?? '')?.[1];

  it('goes over STARTTLS to the recipients of the channel', async () => {
    const answer = await sendTo(await serve());
    assert.deepEqual(answer, { delivered: true, said: '250 queued as 1' });
    const [{ from, to, secure } = assert.fail()] = mails;
    assert.deepEqual([from, to, secure], ['access@example.com', ['sec@example.com', 'ops@example.com'], true]);
  });

  it('goes over TLS, with a login', async () => {
    const login = { username: 'mailer', password: 'pass-word' };
    const answer = await send(mailSink(await serve({ secure: true }), 'smtps', { login }), message);
    assert.equal(answer.delivered, true, answer.said);
    assert.deepEqual([mails[0]?.user, mails[0]?.secure], ['mailer', true]);
  });

  it('goes to one address in place of the channel', async () => {
    await sendTo(await serve(), {}, { to: 'alice@example.com' });
    assert.deepEqual(mails[0]?.to, ['alice@example.com']);
  });

  it('has headers that make one thread of the messages about a request', async () => {
    const answer = await createSend({ clock: new SimulatedClock(nowMs), allowed: ['127.0.0.1/32'] })(
      mailSink(await serve()),
      message,
      new AbortController().signal,
    );
    assert.equal(answer.delivered, true);
    const thread = '<request.uid-1@drawbridge.prod-eu-1>';
    assert.equal(header('Message-ID'), `<${factOf().id}@drawbridge.prod-eu-1>`);
    assert.deepEqual([header('References'), header('In-Reply-To')], [thread, thread]);
    assert.equal(header('Auto-Submitted'), 'auto-generated');
    assert.equal(header('Subject'), '[drawbridge] alice asks for access in payments');
    assert.match(mails[0]?.body ?? '', /text\/plain.*text\/html/s);
  });

  it('of a digest belongs to no thread', async () => {
    await send(mailSink(await serve()), messageOf([factOf(), factOf()], { id: 'digest-1' }));
    assert.deepEqual([header('References'), header('Message-ID')], [undefined, '<digest-1@drawbridge.prod-eu-1>']);
  });

  it('has no headers of an attacker', async () => {
    const evil = 'x\r\nBcc: evil@example.com\r\n\r\n<b>body</b>';
    const port = await serve();
    await sendTo(port, {}, { facts: [factOf({ requester: evil, reason: evil })], source: evil, id: 'id-1' });
    assert.doesNotMatch(mails[0]?.head ?? '', /^Bcc/im);
    assert.deepEqual(mails[0]?.to, ['sec@example.com', 'ops@example.com']);
    assert.match(header('Subject') ?? '', /^\[drawbridge\] x Bcc: evil@example.com <b>body<\/b> asks/);
  });

  it('is not sent without TLS', async () => {
    const answer = await sendTo(await serve({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'] }));
    assert.equal(answer.delivered, false);
    assert.deepEqual(mails, []);
  });

  it('is not sent to a server of another authority', async () => {
    const { caBundle: _, ...sink } = mailSink(await serve());
    const answer = await send(sink, message);
    assert.equal(!answer.delivered && answer.code, 'Unreachable');
    assert.match(answer.said, /certificate/);
  });

  it('is not sent to a server with the certificate of another name', async () => {
    const lookup = async () => [{ address: '127.0.0.1', family: 4 }];
    const sink = { ...mailSink(1), address: new URL(`smtp://other.test:${await serve()}`) };
    const sendTo = createSend({ clock: new SimulatedClock(), allowed: ['127.0.0.1/32'], lookup });
    assert.match((await sendTo(sink, message, new AbortController().signal)).said, /altnames/);
    assert.deepEqual(mails, []);
  });

  const refusedWith = (code: number): Error => Object.assign(new Error('try later'), { responseCode: code });
  const refusals = {
    'a temporary refusal': [{ onRcptTo: (_, __, done) => done(refusedWith(451)) }, {}, /^451 try later/],
    'a refusal of the sender': [{ onMailFrom: (_, __, done) => done(refusedWith(550)) }, {}, /^550 try later/],
    'a refusal of the login': [{}, { login: { username: 'mailer', password: 'wrong-pass' } }, /^535 /],
  } satisfies Record<string, [SMTPServerOptions, Partial<Sink>, RegExp]>;
  for (const [what, [options, rest, said]] of Object.entries(refusals))
    it(`is not delivered after ${what}`, async () => {
      const answer = await sendTo(await serve(options), rest);
      assert.equal(!answer.delivered && answer.code, 'Refused', answer.said);
      assert.match(answer.said, said);
    });

  it('is delivered if a server refuses one of the recipients, and says which', async () => {
    const port = await serve({
      onRcptTo: ({ address }, _, done) => done(address.startsWith('ops') ? refusedWith(550) : undefined),
    });
    const answer = await sendTo(port);
    assert.deepEqual(answer, { delivered: true, said: '250 queued as 1; refused for ops@example.com' });
  });

  it('shows no password that a server echoes', async () => {
    const login = { username: 'mailer', password: 'other-pass' };
    const port = await serve({
      onAuth: ({ password }, _, done) =>
        done(new Error(`not ${password} or ${Buffer.from(`\0mailer\0${password}`).toString('base64')}`)),
    });
    const { said } = await sendTo(port, { login });
    assert.match(said, /not \*{10} or \*+$/);
  });

  for (const to of ['', 'root', 'a@example.com,b@example.com', 'a@example.com\r\nRCPT TO:<b@example.com>', '<a@b.c>'])
    it(`is not sent to ${JSON.stringify(to)}`, async () => {
      const answer = await sendTo(await serve(), {}, { to });
      assert.deepEqual([answer.delivered, mails], [false, []]);
    });

  it('without recipients is not sent', async () => {
    const { channel: _, ...sink } = mailSink(await serve());
    assert.equal((await send(sink, message)).delivered, false);
  });

  describe('to a server that is no mail server', () => {
    const sockets: Socket[] = [];
    const listening = async (onConnection: (socket: Socket) => void): Promise<number> => {
      const server = createServer((socket) => {
        sockets.push(socket.on('error', () => undefined));
        onConnection(socket);
      });
      servers.push(server);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      return portOf(server);
    };
    afterEach(() => {
      for (const socket of sockets.splice(0)) socket.destroy();
    });

    const stages: Record<string, string[]> = {
      'says nothing': [],
      'says nothing after its greeting': ['220 hello\r\n'],
      'says nothing in the TLS handshake': ['220 hello\r\n', '250-hi\r\n250 STARTTLS\r\n', '220 go\r\n'],
    };
    for (const [what, script] of Object.entries(stages))
      it(`ends at the time limit if that ${what}`, async () => {
        let isReached = false;
        const port = await listening((socket) => {
          const lines = [...script];
          const next = (): void => {
            const line = lines.shift();
            if (line === undefined) isReached = true;
            else socket.write(line);
          };
          next();
          socket.on('data', next);
        });
        const clock = new SimulatedClock();
        const answer = createSend({ clock, allowed: ['127.0.0.1/32'] })(
          mailSink(port),
          message,
          new AbortController().signal,
        );
        await until('the server is reached', () => isReached, { timeoutMs: 5000, everyMs: 1 });
        await clock.advance(10_000);
        assert.deepEqual(await answer, {
          delivered: false,
          code: 'Unreachable',
          said: 'no answer within 10000 ms',
        });
        await until('the connection is closed', () => sockets.every(({ closed }) => closed), {
          timeoutMs: 5000,
          everyMs: 1,
        });
      });

    const breaks: Record<string, (socket: Socket) => void> = {
      'resets the connection': (socket) => socket.resetAndDestroy(),
      'resets it in the TLS handshake': (socket) => {
        socket.write('220 hello\r\n');
        socket.once('data', () => {
          socket.write('250 STARTTLS\r\n');
          socket.once('data', () => {
            socket.write('220 go\r\n');
            socket.once('data', () => socket.resetAndDestroy());
          });
        });
      },
      'answers without end': (socket) => {
        const more = (): void => {
          while (!socket.destroyed && socket.write('220-'.padEnd(1000, 'x')));
        };
        socket.on('drain', more);
        more();
      },
      'answers in HTTP': (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    };
    for (const [what, onConnection] of Object.entries(breaks))
      it(`is not delivered if that ${what}`, async () => {
        const answer = await sendTo(await listening(onConnection));
        assert.equal(answer.delivered, false);
      });
  });
});
