import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { until } from '../../../sandbox/wait.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import { newSignedPair } from '../../../src/certificates/material.ts';
import { Gateway } from '../../../src/gateway/gateway.ts';
import { Sessions } from '../../../src/gateway/sessions.ts';
import { silentLog } from '../../../src/kube/log.ts';
import { GatewayCluster } from '../../support/gateway-cluster.ts';
import {
  connectTo,
  frontProxyOf,
  frontProxySettings,
  type GatewayServer,
  openGatewayServer,
} from '../../support/gateway-server.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

type GatewayDeps = ConstructorParameters<typeof Gateway>[0];

describe('a call for a grant', () => {
  const authority = createAuthority('front-proxy');
  const frontProxy = frontProxyOf(frontProxySettings(authority.certificate, ['x-remote-user']));
  let cluster: GatewayCluster;
  /** What the gateway began: reads at the API server, and streams. */
  let begun: string[];
  /** The codes of the denials in the journal. */
  let denied: string[];
  let closed: Promise<void>;
  let server: GatewayServer;
  let authorityOfServer: string | undefined;
  /** The number of timers that no call set. */
  let otherTimers: number;

  beforeEach(async () => {
    cluster = new GatewayCluster(new SimulatedClock());
    [begun, denied] = [[], []];
    const whenClosed = Promise.withResolvers<void>();
    closed = whenClosed.promise;
    const { pair, authority: signer } = newSignedPair(['gateway.ns.svc'], Date.now());
    authorityOfServer = signer;
    const begin = (what: string) => async () => {
      begun.push(what);
      throw new Error('begun');
    };
    const gateway = new Gateway({
      frontProxy,
      grants: cluster.grants,
      sessions: new Sessions(cluster.grants, cluster.clock),
      upstream: { open: begin('read') },
      opening: { open: begin('stream') },
      audit: { denied: async (_call: unknown, { code }: { code: string }) => denied.push(code) },
      clock: cluster.clock,
      log: silentLog,
    } as unknown as GatewayDeps);
    otherTimers = cluster.clock.pendingTimers;
    const calls: Parameters<typeof openGatewayServer>[1] = {
      onRequest: (request, response) => {
        response.once('close', whenClosed.resolve);
        return gateway.onRequest(request, response);
      },
      onUpgrade: (request, socket, head) => {
        socket.once('close', whenClosed.resolve);
        return gateway.onUpgrade(request, socket, head);
      },
    };
    server = await openGatewayServer(pair, calls, { frontProxy });
  });
  afterEach(() => server.close());

  /** Alice's call for the grant, through the API server. */
  function call(target: string, headers: string): TLSSocket {
    const { certificate: cert, key } = issue(authority, { commonName: 'front-proxy-client' });
    const socket = connectTo(server, authorityOfServer, { cert, key });
    const { namespace, name } = cluster.grant;
    const path = `${grantProxyPath(namespace, name)}/api/v1/namespaces/${namespace}/pods/web-0${target}`;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\n${headers}\r\n`);
    return socket;
  }

  const rule = (resource: string, ...verbs: string[]) => ({
    apiGroups: [''],
    resources: [resource],
    resourceNames: ['web-0'] as [string],
    verbs,
  });
  const open = () =>
    cluster.open(cluster.clock.now() + 60_000, {
      rules: [rule('pods', 'get'), rule('pods/log', 'get'), rule('pods/exec', 'get', 'create')],
    });
  const protocol = 'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n';
  const forBob = { subjects: [{ kind: 'User' as const, name: 'bob' }] };
  const refusals: [what: string, refuse: () => unknown, message: RegExp, lines: readonly string[]][] = [
    ['has ended', () => open() && cluster.change({ spec: { revoked: true } }), /its access has ended: Revoked/, []],
    ['was given to another', () => cluster.open(cluster.clock.now() + 60_000, forBob), /was given to bob/, ['NoGrant']],
    ['is not read yet', () => cluster.clock.advance(91_000), /has not read the grants/, []],
  ];
  for (const [what, refuse, message, lines] of refusals) {
    it(`opens an exec whose grant ${what} only to refuse it, so that kubectl does not repeat it by SPDY`, async () => {
      await refuse();
      const socket = call('/exec?command=sh', `Connection: Upgrade\r\nUpgrade: websocket\r\n${protocol}`);
      const answer = await text(socket);
      assert.match(answer, /^HTTP\/1\.1 101 /);
      assert.match(answer, message);
      assert.deepEqual(denied, lines);
    });
  }

  const soon = { timeoutMs: 5000, everyMs: 5 };
  const waits = () => until('the call to wait', async () => cluster.clock.pendingTimers > otherTimers, soon);
  const calls: [what: string, target: string, headers: string][] = [
    ['read', '/log?follow=true', ''],
    ['stream', '/exec?command=sh&stdout=true', `Connection: Upgrade\r\nUpgrade: websocket\r\n${protocol}`],
  ];
  for (const [what, target, headers] of calls) {
    it(`begins its ${what} once the watch reports the grant`, async () => {
      const socket = call(target, headers);
      socket.on('error', () => {});
      await waits();
      assert.deepEqual(begun, []);
      open();
      await until('it to begin', async () => begun.length > 0, soon);
      assert.deepEqual(begun, [what]);
      socket.destroy();
    });

    it(`begins no ${what} for a client that left meanwhile`, async () => {
      const socket = call(target, headers);
      socket.on('error', () => {});
      await waits();
      socket.destroy();
      await closed;
      open();
      await cluster.clock.advance(0);
      assert.deepEqual(begun, []);
      assert.equal(cluster.clock.pendingTimers, otherTimers, 'nothing waits any more');
    });
  }
});
