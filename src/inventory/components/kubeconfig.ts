import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { KubeObject } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import type { Component } from '../ports/component.ts';
import { shoots } from './cluster.ts';
import type { ComponentsDeps } from './deps.ts';
import { configOf, missingOf, outputsBesides, textAt, waitForAbsence, wholeNumberAt } from './inputs.ts';
import { type IssuedKubeconfig, keepKubeconfig, versionOf } from './kubeconfig-output.ts';

const name = 'kubeconfig';
const shoot = '/status/outputs/cluster/shootName';
const endpoint = '/status/outputs/cluster/endpoint';
const authority = '/status/outputs/cluster/ca';

/** Seconds. Gardener gives none for less than 10 minutes. */
export const lifetimes = { least: 600, usual: 86_400 };

/** The kubeconfig of a cluster that Gardener made, replaced well before its end. */
export function kubeconfigComponent({ management, namespace, clock }: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      if (run.request.operation === 'delete') return whenUnused(entry);
      const missing = missingOf(entry, shoot, endpoint);
      if (missing) return missing;
      const at = { namespace: namespace ?? entry.metadata.namespace ?? '', name: textAt(entry, shoot) ?? '' };
      const lifetime = lifetimeOf(entry, name);
      const source = {
        component: name,
        origin: versionOf(`${textAt(entry, endpoint)} ${textAt(entry, authority)}`),
        issue: () => adminKubeconfig(management, at, lifetime, clock, run.signal),
      };
      return keepKubeconfig(run, entry, source, clock);
    },
  };
}

/** Nothing is left of a kubeconfig but its end; those who have something in the cluster need it until they are done. */
export const whenUnused = (entry: KubeObject): Outcome =>
  waitForAbsence(entry, ...outputsBesides(entry, 'network', 'cluster', 'kubeconfig')) ?? { outcome: 'Deleted' };

export function lifetimeOf(entry: KubeObject, component: string): number {
  return Math.max(lifetimes.least, wholeNumberAt(entry, configOf(component, 'lifetimeSeconds')) ?? lifetimes.usual);
}

async function adminKubeconfig(
  management: Client,
  at: { readonly namespace: string; readonly name: string },
  expirationSeconds: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<IssuedKubeconfig> {
  const request = {
    apiVersion: 'authentication.gardener.cloud/v1alpha1',
    kind: 'AdminKubeconfigRequest',
    metadata: { ...at },
    spec: { expirationSeconds },
  };
  const { status } = await management.create(shoots, request, { subresource: 'adminkubeconfig', signal });
  const [kubeconfig, expires] = [own(status, 'kubeconfig'), own(status, 'expirationTimestamp')];
  if (typeof kubeconfig !== 'string') throw new CodedError('NoKubeconfig', 'Gardener answered without a kubeconfig');
  return {
    text: Buffer.from(kubeconfig, 'base64').toString('utf8'),
    expiresAtMs:
      (typeof expires === 'string' ? parseTime(expires) : undefined) ?? clock.now() + expirationSeconds * 1000,
  };
}
