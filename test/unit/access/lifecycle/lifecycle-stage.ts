import { accessControllers } from '../../../../src/access/controllers.ts';
import { GrantQuota } from '../../../../src/access/lifecycle/grant-quota.ts';
import { type Limits, noLimits } from '../../../../src/access/policy/limits.ts';
import { Signer, type SigningKeys } from '../../../../src/access/signing/signer.ts';
import { openAccessStores } from '../../../../src/access/stores/access-stores.ts';
import { revokeFinalizer } from '../../../../src/api/access/names.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { deployments, pods } from '../../../../src/api/resources.ts';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { Manager } from '../../../../src/engine/manager.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import type { RecordedEvent } from '../../../../src/kube/event-object.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import type { RbacRule } from '../../../../src/rbac/rule-cover.ts';
import { podRequestManifest, podTemplateManifest } from '../../../support/access-objects.ts';
import { keyOf } from '../../../support/signers.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from './memory-cluster.ts';

export const requestName = { namespace: 'payments', name: 'debug' };

/** All controllers of access on a cluster in memory, with a simulated clock. */
export class LifecycleStage {
  readonly clock = new SimulatedClock();
  readonly cluster = new MemoryCluster(this.clock);
  /** The keys with which the controllers sign. A test can remove them. */
  readonly ring: { keys: SigningKeys | undefined; refresh(): Promise<void> } = {
    keys: { current: keyOf('life') },
    refresh: () => Promise.resolve(),
  };
  readonly signer = new Signer(this.ring);
  readonly lines: AuditRecord[] = [];
  readonly events: RecordedEvent[] = [];
  metrics = createMetrics();
  limits: Limits = noLimits;
  grantable: readonly RbacRule[] = [];
  #stop = new AbortController();
  #run: Promise<void> = Promise.resolve();

  constructor() {
    const { cluster } = this;
    cluster.put(deployments, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'payments', name: 'payments' },
      spec: {
        selector: { matchLabels: { app: 'payments' } },
        template: {
          metadata: { labels: { app: 'payments' } },
          spec: { containers: [{ name: 'app', image: 'app:1' }] },
        },
      },
    } as KubeObject);
    cluster.put(podAccessTemplates, podTemplateManifest());
  }

  /** Starts a new process without state. */
  async start(): Promise<void> {
    this.metrics = createMetrics();
    const { clock, cluster, lines, events, metrics } = this;
    this.#stop = new AbortController();
    const manager = new Manager({ clock, log: noLog, random: () => 0 });
    const stores = openAccessStores(cluster);
    const loops = accessControllers({
      client: cluster.client,
      signer: this.signer,
      quota: new GrantQuota({ stores, limits: this.limits, clock }),
      grantable: this.grantable,
      stores,
      journal: {
        available: true,
        append: async (record) => {
          lines.push(record);
        },
      },
      events: { record: (event) => events.push(event), close: () => Promise.resolve() },
      clock,
      log: noLog,
      metrics,
      // The template of this stage has no attestation of the webhook.
      trustExistingTemplates: true,
      accessPods: 'confined',
    });
    for (const loop of loops) manager.add(loop);
    this.#run = manager.run(this.#stop.signal);
    await this.clock.advance(10);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }

  /** Creates a request of alice, attested like by the webhook. */
  ask(
    spec: Readonly<Record<string, unknown>> = {},
    { name = requestName.name, groups = ['devs'] }: { readonly name?: string; readonly groups?: string[] } = {},
  ): void {
    const requester = { username: 'alice', uid: '', groups, time: formatTime(this.clock.now()) };
    const unsigned = podRequestManifest({ duration: '10m', ...spec });
    const signed = this.signer.signRequester({
      ...requestName,
      name,
      kind: unsigned.kind,
      spec: unsigned.spec,
      requester,
    });
    const manifest = podRequestManifest({ duration: '10m', requester: { ...requester, ...signed }, ...spec });
    const metadata = { ...manifest.metadata, name, finalizers: [revokeFinalizer] };
    this.cluster.put(podAccessRequests, { ...manifest, metadata } as KubeObject);
  }

  get request(): KubeObject | undefined {
    return this.cluster.find(podAccessRequests, requestName);
  }

  /** Writes the status of the pods like the kubelet. */
  podBecomesReady(): void {
    for (const key of this.cluster.names(pods)) {
      const [namespace = '', name = ''] = key.split('/');
      const pod = this.cluster.find(pods, { namespace, name });
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
      if (pod) this.cluster.put(pods, { ...pod, status } as KubeObject);
    }
  }

  /** The audit lines as `event verdict`, for example `grant granted`. */
  get auditVerdicts(): string[] {
    return this.lines.map(({ event, verdict }) => `${event} ${verdict}`);
  }
}
