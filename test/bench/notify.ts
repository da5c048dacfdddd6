import { createServer, type Server } from 'node:net';
import { NotifyProcess } from '../../sandbox/notify-process.ts';
import { portOf } from '../../sandbox/ports.ts';
import { NotificationReceiver } from '../support/notification-receiver.ts';
import { benchmark } from './support/command.ts';
import { type Figures, numberFrom } from './support/figures.ts';
import type { BenchStage } from './support/stage.ts';
import { spreadRound } from './workloads/expiry.ts';
import { approvedRound } from './workloads/lone.ts';

const group = 'access.drawbridge.dev/v1alpha1';
/** The stage waits until its own namespace has no RoleBindings. */
const sinks = 'bench-sinks';
const events = ['requested', 'approved', 'denied', 'granted', 'ending', 'ended'];

/**
 * The times of access in turn without notifications, with a webhook that answers, and with one that never does: N requests in sequence,
 * N that a second person approves, and N grants that expire over 10 s.
 */
const count = numberFrom('N', 100);

let receiver: NotificationReceiver | undefined;
const silent = silentServer();

await benchmark('notify', async (stage) => {
  if (!receiver) {
    receiver = await NotificationReceiver.open(stage.plane.authority);
    await stage.admin.call('POST', '/api/v1/namespaces', { metadata: { name: sinks } });
  }
  return {
    ...prefixed('off', await accessTimes(stage)),
    ...prefixed('on', await withNotifications(stage, receiver.url, receiver.signingKey)),
    ...prefixed('hanging', await withNotifications(stage, `https://localhost:${portOf(silent)}/`, receiver.signingKey)),
  };
});

async function accessTimes(stage: BenchStage): Promise<Figures> {
  const mark = stage.plane.auditLog.mark();
  const { createToReadyP50Ms, createToReadyP99Ms, voteToReadyP50Ms, voteToReadyP99Ms } = await approvedRound(
    stage,
    count,
  );
  const { writes } = stage.calls(mark);
  const { p50Ms, p99Ms } = await spreadRound(stage, count, 10_000, 20);
  return {
    createToReadyP50Ms,
    createToReadyP99Ms,
    voteToReadyP50Ms,
    voteToReadyP99Ms,
    expiryP50Ms: p50Ms,
    expiryP99Ms: p99Ms,
    serverWritesARequest: writes / (2 * count + 10),
  } as Figures;
}

async function withNotifications(stage: BenchStage, address: string, signingKey: string): Promise<Figures> {
  const { plane, namespace, admin } = stage;
  const notifications = await NotifyProcess.start(plane, {
    namespace: stage.server.installation.namespace,
    secretNamespaces: [sinks],
  });
  const providers = `/apis/${group}/namespaces/${sinks}/notificationproviders`;
  const subscriptions = `/apis/${group}/namespaces/${namespace}/notificationsubscriptions`;
  const secrets = `/api/v1/namespaces/${sinks}/secrets`;
  const secret = {
    metadata: { name: 'sink' },
    type: 'access.drawbridge.dev/notification-provider',
    stringData: { address, signingKey },
  };
  await admin.call('POST', secrets, secret);
  await admin.call('POST', providers, {
    apiVersion: group,
    kind: 'NotificationProvider',
    metadata: { name: 'sink' },
    spec: {
      type: 'Webhook',
      secretRef: { name: 'sink' },
      caBundle: plane.authority.certificate,
      namespaces: [namespace],
    },
  });
  await admin.call('POST', subscriptions, {
    apiVersion: group,
    kind: 'NotificationSubscription',
    metadata: { name: 'all' },
    spec: { providerRef: { name: 'sink', namespace: sinks }, events },
  });
  const mark = plane.auditLog.mark();
  try {
    const times = await accessTimes(stage);
    const writes = plane.auditLog
      .calls({ user: notifications.user, since: mark })
      .filter(({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && resource !== 'leases').length;
    return { ...times, notifyWrites: writes } as Figures;
  } finally {
    await notifications.stop();
    await admin.call('DELETE', `${subscriptions}/all`);
    await admin.call('DELETE', `${providers}/sink`);
    await admin.call('DELETE', `${secrets}/sink`);
  }
}

function prefixed(prefix: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}.${name}`, value]));
}

/** It accepts connections, and sends nothing. */
function silentServer(): Server {
  return createServer(() => undefined).listen(0, '127.0.0.1');
}
