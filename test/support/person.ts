import { type ApiAnswer, type ApiTarget, callApi } from '../../sandbox/api-call.ts';
import type { RunResult } from '../../sandbox/build/run.ts';
import { type Identity, issue } from '../../sandbox/pki.ts';
import type { KubectlOptions, PlaneClient } from '../../sandbox/plane-client.ts';
import { until } from '../../sandbox/wait.ts';
import { RawStream } from './raw-stream.ts';
import { openWebSocket } from './web-socket.ts';

/** A call, as a SelfSubjectAccessReview describes it. */
interface ResourceAttributes {
  readonly namespace: string;
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** A user with a client certificate, who uses kubectl and plain calls. */
export class Person {
  readonly name: string;
  readonly kubeconfig: string;
  readonly #plane: PlaneClient;
  readonly #identity: Identity;

  private constructor(plane: PlaneClient, name: string, groups: readonly string[], kubeconfig: string) {
    this.name = name;
    this.kubeconfig = kubeconfig;
    this.#plane = plane;
    this.#identity = issue(plane.authority, { commonName: name, groups });
  }

  static async of(plane: PlaneClient, name: string, groups: readonly string[]): Promise<Person> {
    return new Person(plane, name, groups, await plane.kubeconfigFor(name, groups));
  }

  call(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<ApiAnswer> {
    return callApi(this.#target(), method, path, body, headers);
  }

  /** A GET that requests a WebSocket. Default protocol: that of exec. */
  open(path: string, protocol?: string): Promise<ApiAnswer> {
    return openWebSocket(this.#target(), path, protocol);
  }

  /** A stream of which the test sends each frame. */
  stream(path: string, protocol?: string): Promise<RawStream> {
    return RawStream.open(this.#target(), path, protocol);
  }

  #target(): ApiTarget {
    const { server, authority } = this.#plane;
    return { server, authority: authority.certificate, identity: this.#identity };
  }

  kubectl(args: readonly string[], options: Omit<KubectlOptions, 'kubeconfig'> = {}): Promise<RunResult> {
    return this.#plane.kubectl(args, { ...options, kubeconfig: this.kubeconfig });
  }

  /** `kubectl auth can-i create pods/POD --subresource=exec`: yes or no. */
  async canExec(namespace: string, pod: string): Promise<string> {
    const args = ['auth', 'can-i', 'create', `pods/${pod}`, '--subresource=exec', '-n', namespace];
    const { stdout } = await this.kubectl(args, { reject: false });
    return stdout.trim();
  }

  /** The same as `canExec`, in one call to the API server. */
  mayExec(namespace: string, pod: string): Promise<boolean> {
    return this.may({ namespace, verb: 'create', resource: 'pods', subresource: 'exec', name: pod });
  }

  /** Resolves once the user may exec into the pod: the API server observes a RoleBinding a moment after its creation. */
  async entering(namespace: string, pod: string): Promise<void> {
    await until(`${this.name} to be allowed to enter ${pod}`, () => this.mayExec(namespace, pod), {
      timeoutMs: 30_000,
    });
  }

  /** Whether RBAC allows the call, as the API server observes it now. */
  async may(resourceAttributes: ResourceAttributes): Promise<boolean> {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    };
    const { body } = await this.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review);
    return (body as { status?: { allowed?: boolean } }).status?.allowed === true;
  }
}
