import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { newSignedPair } from '../../../src/certificates/material.ts';
import { LiveSession, LiveViews } from '../../../src/gateway/live-views.ts';
import { isPeerPath, PeerIdentity, Peers } from '../../../src/gateway/peers.ts';
import { SessionCast } from '../../../src/gateway/recording/session-cast.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { KeyPair } from '../../../src/kit/key-pair.ts';
import { type GatewayServer, openGatewayServer } from '../../support/gateway-server.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const name = { namespace: 'payments', session: '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10' };
const path = `/peer/payments/${name.session}`;
const record = {
  event: 'session',
  who: { user: 'alice' },
  what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod' },
} as const;
const newPair = (): KeyPair => newSignedPair(['gateway.ns.svc'], Date.now()).pair;
const never = new AbortController().signal;

describe('the replicas of the gateway', () => {
  let pair: KeyPair;
  let identity: PeerIdentity;
  let views: LiveViews;
  let cast: SessionCast;
  let end: (reason: string) => void;
  let server: GatewayServer;
  let address: string;

  beforeEach(async () => {
    pair = newPair();
    identity = new PeerIdentity(pair);
    views = new LiveViews(systemClock);
    cast = new SessionCast(systemClock, false);
    end = views.begin(new LiveSession(name, cast, record));
    const peers = new Peers({ identity, views, clock: systemClock });
    const onRequest: Parameters<typeof openGatewayServer>[1]['onRequest'] = async (call, response) => {
      if (isPeerPath(call.url)) peers.answer(call, response);
      else response.end('not for replicas');
    };
    server = await openGatewayServer(pair, { onRequest }, { identity });
    address = `127.0.0.1:${server.port}`;
  });
  afterEach(() => server.close());

  const replica = (own: KeyPair, clock = systemClock): Peers =>
    new Peers({ identity: new PeerIdentity(own), views: new LiveViews(clock), clock });
  /** A call of any client. */
  const call = async (own: KeyPair | undefined, target: string, method = 'GET'): Promise<IncomingMessage> => {
    const identified = own ? { cert: own.cert, key: own.key } : {};
    const socket = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false, ...identified });
    const sent = request({ createConnection: () => socket, path: target, method });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer;
  };

  it('show each other their sessions until these end', async () => {
    const answer = await replica(pair).open(address, name, never);
    assert.equal(answer.statusCode, 200);
    cast.fromPod(Buffer.from('\u0001hello'), 1);
    end('the session ended');
    const lines = (await text(answer)).trimEnd().split('\n');
    assert.match(lines[1] ?? '', /"o","hello"/);
    assert.match(lines[2] ?? '', /"m","the session ended"/);
  });

  for (const [who, own] of [
    ['a client without a certificate', () => undefined],
    ['a client with another certificate, also of the same name', newPair],
  ] as const) {
    it(`show nothing to ${who}`, async () => {
      const answer = await call(own(), path);
      assert.equal(answer.statusCode, 401);
      assert.doesNotMatch(await text(answer), /version/);
    });
  }

  for (const [target, method = 'GET'] of [
    ['/peer/'],
    ['/peer/payments'],
    [`${path}/log`],
    [`${path}?x`],
    [`/peer/..%2fpayments/${name.session}`],
    [`/peer/../payments/${name.session}`],
    ['/peer/payments/..'],
    [path.toUpperCase()],
    [path, 'POST'],
    [path.replace('payments', 'other')],
  ] as const) {
    it(`do not show ${method} ${target}, even to each other`, async () => {
      const answer = await call(pair, target, method);
      assert.doesNotMatch(await text(answer), /"version"/);
    });
  }

  it('send nothing to a server with another certificate', async () => {
    await assert.rejects(replica(newPair()).open(address, name, never), /neither the current certificate/);
  });

  it('know each other while their pair changes', async () => {
    const next = newPair();
    identity.replace(next);
    identity.replace(next);
    const [before, after] = [new PeerIdentity(pair), new PeerIdentity(pair)];
    after.replace(next);
    for (const own of [before, after]) {
      const peers = new Peers({ identity: own, views, clock: systemClock });
      const answer = await peers.open(address, name, never);
      assert.equal(answer.statusCode, 200);
      answer.destroy();
    }
    identity.replace(newPair());
    assert.equal((await call(pair, path)).statusCode, 401);
  });

  it('free the place of a viewer who leaves', async () => {
    for (let i = 0; i < 9; i++) {
      const abort = new AbortController();
      const answer = await replica(pair).open(address, name, abort.signal);
      assert.equal(answer.statusCode, 200, `view ${i}`);
      answer.on('error', () => {});
      const closed = new Promise((resolve) => answer.once('close', resolve));
      abort.abort();
      await closed;
      // Its server learns of it a little later.
      for (let free = false; !free; ) {
        const place = views.admit(name);
        free = !('status' in place);
        if ('release' in place) place.release();
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  });

  for (const wrong of ['localhost:1', '127.0.0.1', '127.0.0.1:0', '127.0.0.1:99999', '[::1', 'example.org:443', '']) {
    it(`do not call the address ${JSON.stringify(wrong)}`, async () => {
      await assert.rejects(async () => replica(pair).open(wrong, name, never), /not IP:port/);
    });
  }

  describe('with one that accepts connections and never answers', () => {
    let silent: Server;
    before(async () => {
      silent = createServer(() => {}).listen(0, '127.0.0.1');
      await once(silent, 'listening');
    });
    after(() => silent.close());

    it('give up after 5 s', async () => {
      const clock = new SimulatedClock();
      const opening = replica(pair, clock).open(`127.0.0.1:${(silent.address() as AddressInfo).port}`, name, never);
      const failed = assert.rejects(opening, /did not answer within 5 s/);
      await clock.advance(5000);
      await failed;
    });
  });
});
