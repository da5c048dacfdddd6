import { randomUUID } from 'node:crypto';
import {
  type NotificationProvider,
  notificationProviders,
  testAnnotation,
} from '../../api/notify/notification-provider.ts';
import type { KubeObject } from '../../api/object.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { follow } from '../follow.ts';
import { outputForm, printObject } from '../output.ts';
import { Problem } from '../problem.ts';
import { readyOf } from '../request-state.ts';

/** A message may be on its way: twice the longest timeout of a provider, and a little. */
const MAX_WAIT_MS = 75_000;

export const notifyTest: Command = {
  name: 'notify test',
  summary: 'Send a test message to a NotificationProvider, and show what it answered',
  details:
    'Waits at most 75 s for the answer. Exits with 1 if the message was not delivered. Needs the permission to patch the provider, which namespace admins have.',
  args: [{ name: 'PROVIDER', complete: 'providers' }],
  examples: ['notify test chat', 'notify test chat -n payments -o json'],
  async run({ args, io, clock, signal, connect }) {
    const form = outputForm(args);
    const [name = ''] = args.positionals;
    const connection = await connect();
    const { cluster, namespace, program, where } = connection;
    const id = randomUUID();
    const patch = { metadata: { annotations: { [testAnnotation]: id } } };
    await cluster.client.mergePatch(notificationProviders, { namespace, name }, patch);
    const toContinue = `To try again: ${program} notify test ${name} ${where}`;
    const deadlineMs = clock.monotonic() + MAX_WAIT_MS;
    let found = '';
    const provider = await follow(connection, [{ resource: notificationProviders, name: { namespace, name } }], {
      clock,
      signal,
      toContinue,
      onChange(now) {
        if (!now) throw new Problem(exits.failed, `provider ${name} was deleted in namespace ${namespace}`);
        found = ` (its condition Ready: ${readyOf(now)?.message ?? 'none'})`;
        return lastTestOf(now)?.id === id ? now : undefined;
      },
      tick() {
        if (clock.monotonic() < deadlineMs) return;
        throw new Problem(
          exits.failed,
          `no answer within ${MAX_WAIT_MS / 1000} s${found}; the feature notify may not run: ask an administrator to set the chart value features.notify, and check: kubectl get pods -A -l app.kubernetes.io/name=drawbridge,app.kubernetes.io/component=notify. ${toContinue}`,
        );
      },
    });
    const { delivered = false, answer = '' } = lastTestOf(provider) ?? {};
    if (!printObject(io, form, provider)) io.print(`${delivered ? 'delivered' : 'not delivered'}: ${answer}\n`);
    return delivered ? exits.done : exits.failed;
  },
};

const lastTestOf = (provider: KubeObject) => (provider as NotificationProvider).status?.lastTest;
