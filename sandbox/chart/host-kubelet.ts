import { setTimeout as sleep } from 'node:timers/promises';
import type { PlaneClient } from '../plane-client.ts';
import { until } from '../wait.ts';
import { Balancer } from './balancer.ts';
import { HostPod } from './host-pod.ts';
import type { PodManifest } from './pod-manifest.ts';

/** Annotation of Pods that this kubelet runs and kwok ignores. */
export const hostAnnotation = 'sandbox/host';

const componentLabel = 'app.kubernetes.io/component';
/** The address of the Service of each component that the API server calls; all these Services have one port. */
const addresses: Readonly<Record<string, string>> = {
  server: '127.0.0.1',
  inventory: '127.0.0.2',
  gateway: '127.0.0.3',
};

const syncEveryMs = 150;
const refreshFilesEveryMs = 1000;

/** Runs the Pods of the chart in one namespace as processes of this machine, and emulates their Services. */
export class HostKubelet {
  readonly #plane: PlaneClient;
  readonly #namespace: string;
  readonly #pods = new Map<string, HostPod>();
  readonly #finished: HostPod[] = [];
  readonly #balancer: Balancer;
  readonly #programs: ReadonlyMap<string, string>;
  readonly #stop = new AbortController();
  readonly #loop: Promise<void>;
  #problem: unknown;

  private constructor(
    plane: PlaneClient,
    namespace: string,
    balancer: Balancer,
    programs: ReadonlyMap<string, string>,
  ) {
    this.#plane = plane;
    this.#namespace = namespace;
    this.#balancer = balancer;
    this.#programs = programs;
    this.#loop = this.#run();
  }

  /** `programs`: paths of programs by image name. Default: `dist/drawbridge.js`. */
  static async start(
    plane: PlaneClient,
    namespace: string,
    programs: ReadonlyMap<string, string> = new Map(),
  ): Promise<HostKubelet> {
    return new HostKubelet(plane, namespace, await Balancer.open(Object.values(addresses)), programs);
  }

  /** The port of the Services. */
  get port(): number {
    return this.#balancer.port;
  }

  /** The Pods that exist. */
  get pods(): readonly HostPod[] {
    return [...this.#pods.values()];
  }

  /** Every Pod that has run. */
  get all(): readonly HostPod[] {
    return [...this.#finished, ...this.#pods.values()];
  }

  /** The logs of all Pods, for a failed test. */
  async logs(): Promise<string> {
    const texts = await Promise.all(this.all.map(async (pod) => `--- ${pod.name}\n${(await pod.log()).slice(-4000)}`));
    return texts.join('\n');
  }

  /** Points a Service of the chart at the balancer, which forwards to its Pods. Changes no other field. */
  async switchService(name: string): Promise<void> {
    const url = `/api/v1/namespaces/${this.#namespace}/services/${name}`;
    const service = (await this.#plane.probe(url)).body as { spec: { selector: Record<string, string> } };
    const externalName = addresses[service.spec.selector[componentLabel] ?? ''];
    const { status, body } = await this.#plane.call('PATCH', url, { spec: { type: 'ExternalName', externalName } });
    if (status !== 200) throw new Error(`Service ${name}: ${status} ${JSON.stringify(body)}`);
  }

  /** Resolves with the Pod that holds the lease. */
  async leader(lease: string, timeoutMs = 30_000): Promise<HostPod> {
    const url = `/apis/coordination.k8s.io/v1/namespaces/${this.#namespace}/leases/${lease}`;
    return until(
      'a leader',
      async () => {
        const { body } = await this.#plane.probe(url);
        const holder = (body as { spec?: { holderIdentity?: string } }).spec?.holderIdentity;
        return this.pods.find((pod) => pod.running && holder === `${pod.name}-${pod.pid}`);
      },
      { timeoutMs, everyMs: 20 },
    );
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all(this.pods.map((pod) => pod.abandon()));
    await this.#balancer.close();
    if (this.#problem !== undefined) throw this.#problem;
  }

  async #run(): Promise<void> {
    let filesAt = 0;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#syncPods();
        await Promise.all(this.pods.map((pod) => pod.observe()));
        if (performance.now() - filesAt > refreshFilesEveryMs) {
          filesAt = performance.now();
          await Promise.all(this.pods.filter(({ running }) => running).map((pod) => pod.refreshFiles()));
        }
      } catch (error) {
        this.#problem ??= error;
      }
      await sleep(syncEveryMs);
    }
  }

  async #syncPods(): Promise<void> {
    const { status, body } = await this.#plane.probe(`/api/v1/namespaces/${this.#namespace}/pods`);
    if (status !== 200) return;
    const found = new Map(
      (body as { items: PodManifest[] }).items
        .filter(({ metadata, spec }) => metadata.annotations?.[hostAnnotation] && spec.nodeName)
        .map((pod) => [pod.metadata.uid, pod]),
    );
    for (const [uid, manifest] of found) {
      const known = this.#pods.get(uid);
      if (manifest.metadata.deletionTimestamp) this.#background((known ?? this.#podOf(manifest)).end());
      else if (!known) {
        const pod = this.#podOf(manifest);
        this.#pods.set(uid, pod);
        this.#background(pod.start());
      }
    }
    for (const [uid, pod] of this.#pods) {
      if (found.has(uid)) continue;
      this.#pods.delete(uid);
      this.#finished.push(pod);
      this.#background(pod.abandon());
    }
  }

  #podOf(manifest: PodManifest): HostPod {
    const onEndpoint = (): void => {
      for (const [component, address] of Object.entries(addresses)) {
        const componentPods = this.pods.filter((pod) => pod.manifest.metadata.labels?.[componentLabel] === component);
        const ready = componentPods.filter(({ endpoint }) => endpoint);
        this.#balancer.route(
          address,
          ready.map((pod) => pod.port('webhooks') || pod.port('gateway')),
        );
      }
    };
    return new HostPod(this.#plane, manifest, onEndpoint, this.#programs);
  }

  #background(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#problem ??= error;
    });
  }
}
