import { isIPv6 } from 'node:net';
import { limitConnections } from '../admission/connection-limits.ts';
import { FairQueue } from '../admission/fair-queue.ts';
import { overloadMetrics } from '../admission/metrics.ts';
import { alwaysLeading } from '../engine/leader-gate.ts';
import { frontProxyProblem, openFrontProxy } from '../gateway/front-proxy.ts';
import { Gateway } from '../gateway/gateway.ts';
import { LiveGrants, openGrantStores } from '../gateway/live-grants.ts';
import { LiveViews } from '../gateway/live-views.ts';
import { PeerIdentity, Peers } from '../gateway/peers.ts';
import { recordingMetrics } from '../gateway/recording/metrics.ts';
import { openRecordings, tryToRecord } from '../gateway/recording/open.ts';
import { Recorder } from '../gateway/recording/recorder.ts';
import { RecordingRetention } from '../gateway/recording/retention.ts';
import { openReplicaStore, Replicas, replicaName } from '../gateway/replicas.ts';
import { startGatewayServer } from '../gateway/server.ts';
import { SessionAudit } from '../gateway/session-audit.ts';
import { SessionObjects } from '../gateway/session-objects.ts';
import { SessionOpening } from '../gateway/session-opening.ts';
import { openSessionStore } from '../gateway/session-view.ts';
import { Sessions } from '../gateway/sessions.ts';
import { Upstream } from '../gateway/upstream.ts';
import { ViewHandler } from '../gateway/view-handler.ts';
import { describe } from '../kit/errors.ts';
import { clock, type Feature, type Host, type OpenFeature, storesProblem } from './feature.ts';

/**
 * Passes users' streams to Pods, and ends them with their grant. All replicas serve; none leads.
 */
export const gateway: Feature = {
  name: 'gateway',
  connections: 10,
  servesHttps: true,
  readFiles: () => open,
};

async function open(host: Host): Promise<OpenFeature> {
  const { config, cluster, credentials, metrics, log } = host;
  const { journal, certificate } = host.serving();
  const frontProxy = openFrontProxy(cluster);
  const stores = openGrantStores(cluster);
  const grants = new LiveGrants(stores, clock);
  const sessions = new Sessions(grants, clock);
  const upstream = new Upstream(credentials, clock);
  const sink = await openRecordings(config.recordings, clock);
  if (sink) {
    // Not a check of readiness: sessions that need no recording can open.
    void tryToRecord(sink, config.leaseNamespace).catch((error: unknown) =>
      log.error('the gateway cannot store recordings; it refuses sessions of templates with record: Required', {
        error: describe(error),
      }),
    );
  }
  const recorder = new Recorder({
    sink,
    journal,
    clock,
    log,
    onLost: recordingMetrics(metrics),
  });
  const queue = new FairQueue({ clock });
  const recordOverload = overloadMetrics(metrics);
  const audit = new SessionAudit(journal, log);
  const views = new LiveViews(clock);
  const replicaStore = openReplicaStore(cluster, config.leaseNamespace);
  const sessionStore = openSessionStore(cluster);
  const { client } = cluster;
  const replicas = new Replicas({
    client: client.urgent(),
    store: replicaStore,
    namespace: config.leaseNamespace,
    replica: replicaName(config.identity),
    address: () => config.peerAddress && `${urlHostOf(config.peerAddress)}:${server.port}`,
    clock,
  });
  const objects = new SessionObjects({ client, store: sessionStore, replicas, clock, log, metrics });
  const retention =
    sink === undefined
      ? undefined
      : new RecordingRetention({
          recordings: sink,
          retentionMs: config.recordingRetention,
          isOpen: (name) => recorder.isOpen(name.session) || objects.holderOf(name) !== undefined,
          journal,
          clock,
          log,
        });
  // An unsynced store lacks the sessions of other replicas. If it closes first, the process stops.
  void sessionStore.whenSynced().then(
    () => retention?.start(),
    () => {},
  );
  const serving = certificate();
  const identity = new PeerIdentity(serving.current);
  const peers = new Peers({ identity, views, clock });
  const viewHandler = new ViewHandler({ views, sink, holderOf: (name) => objects.holderOf(name), peers, audit, log });
  const opening = new SessionOpening({ sessions, objects, upstream, recorder, views, audit, clock });
  const server = await startGatewayServer({
    gateway: new Gateway({
      frontProxy,
      grants,
      sessions,
      upstream,
      opening,
      viewHandler,
      peers,
      audit,
      clock,
      log,
    }),
    frontProxy,
    certificate: serving,
    identity,
    host: config.bindAddress,
    port: config.gatewayPort,
    clock,
    limit: (server, isTrusted) =>
      limitConnections(server, { queue, onRejected: () => recordOverload('connection'), isTrusted }),
  });
  return {
    gate: alwaysLeading('gateway'),
    controllers: objects.controllers(),
    readiness: {
      'gateway-stores': () => storesProblem([...stores, frontProxy, sessionStore, replicaStore]),
      'front-proxy': () => frontProxyProblem(frontProxy),
    },
    ports: { gateway: server.port },
    close: {
      sessions: () => sessions.close(),
      gatewayServer: () => server.close(),
      retention: () => retention?.close(),
      recorder: () => recorder.close(),
      objects: () => objects.close(),
      upstream: () => upstream.close(),
    },
  };
}

/** IPv6 in brackets. */
const urlHostOf = (address: string): string => (isIPv6(address) ? `[${address}]` : address);
