import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { FrontProxy } from '../../src/gateway/front-proxy.ts';
import { PeerIdentity } from '../../src/gateway/peers.ts';
import { startGatewayServer } from '../../src/gateway/server.ts';
import { systemClock } from '../../src/kit/clock.ts';
import type { KeyPair } from '../../src/kit/key-pair.ts';
import type { Store } from '../../src/kube/store.ts';

export type GatewayServer = Awaited<ReturnType<typeof startGatewayServer>>;
type Options = Parameters<typeof startGatewayServer>[0];

/** A store with these settings, or with none yet. */
export const frontProxyOf = (settings?: FrontProxy) =>
  ({ get: () => settings, subscribe: () => () => {} }) as unknown as Store<FrontProxy>;

/** Settings that allow any certificate of the authority. */
export const frontProxySettings = (authorities: string, username: string[] = []): FrontProxy => ({
  key: 'k',
  uid: 'u',
  resourceVersion: '1',
  authorities,
  names: [],
  headers: { username, uid: [], groups: [] },
  problem: undefined,
});

/** The server of the gateway on a free port of loopback, with a pair that does not change. */
export const openGatewayServer = (
  pair: KeyPair,
  gateway: Partial<Options['gateway']>,
  over: Partial<Options> = {},
): Promise<GatewayServer> =>
  startGatewayServer({
    gateway: { onRequest: async () => {}, onUpgrade: async () => {}, ...gateway },
    frontProxy: frontProxyOf(),
    identity: new PeerIdentity(pair),
    certificate: { current: pair, start: (listener) => listener(pair), close() {} },
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    limit: () => {},
    ...over,
  });

/** A connection that trusts the authority of the pair. */
export const connectTo = (
  { port }: GatewayServer,
  authority: string | undefined,
  options: ConnectionOptions & { readonly allowHalfOpen?: boolean } = {},
): TLSSocket =>
  connect({
    port,
    host: '127.0.0.1',
    servername: 'gateway.ns.svc',
    ca: authority ?? '',
    ...options,
  } as ConnectionOptions);
