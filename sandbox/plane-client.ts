import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ApiAnswer, callApi } from './api-call.ts';
import { AuditLog } from './audit-log.ts';
import { type RunResult, run } from './build/run.ts';
import { FaultProxy } from './fault-proxy.ts';
import type { HttpScript } from './http-script.ts';
import { kubeconfig } from './kubeconfig.ts';
import { type PlaneRecord, readIdentity } from './layout.ts';
import { type Authority, type Identity, issue } from './pki.ts';

export interface KubectlOptions {
  /** Path; default the administrator's. */
  readonly kubeconfig?: string;
  /** Standard input. */
  readonly input?: string;
  /** Whether an exit code other than 0 rejects. Default true. */
  readonly reject?: boolean;
}

const admin = { commonName: 'sandbox-admin', groups: ['system:masters'] };

/** Uses a running plane through its folder, whichever process started it. */
export class PlaneClient {
  /** The URL of the apiserver. */
  readonly server: string;
  /** The folder of the plane's files; deleted when the plane stops. */
  readonly directory: string;
  /** PEM of the authority that signed the apiserver's certificate. */
  readonly caFile: string;
  readonly adminKubeconfig: string;
  /** Paths of the client programs. */
  readonly binaries: PlaneRecord['binaries'];
  /** The user of this machine that commands exec'ed into Pods run as. */
  readonly execUser: string;
  readonly auditLog: AuditLog;
  readonly authority: Authority;
  readonly #admin: Identity;
  readonly #probe: Identity;
  readonly #proxies = new Set<FaultProxy>();

  constructor(directory: string, authority: Authority, record: PlaneRecord) {
    this.server = record.server;
    this.directory = directory;
    this.caFile = join(directory, 'pki', 'ca.crt');
    this.adminKubeconfig = join(directory, 'kubeconfigs', 'admin.yaml');
    this.binaries = record.binaries;
    this.execUser = record.execUser;
    this.auditLog = new AuditLog(join(directory, 'audit.log'));
    this.authority = authority;
    this.#admin = issue(authority, admin);
    this.#probe = issue(authority, { commonName: 'sandbox:probe', groups: ['system:masters'] });
  }

  /** Writes a kubeconfig for a new client certificate (CN = user, O = groups) and returns its path. */
  async kubeconfigFor(
    user: string,
    groups: readonly string[] = [],
    options: { readonly server?: string } = {},
  ): Promise<string> {
    const path = join(
      this.directory,
      'kubeconfigs',
      `${user.replace(/[^\w.-]/g, '_')}-${randomUUID().slice(0, 8)}.yaml`,
    );
    await this.writeKubeconfig(path, user, groups, options.server ?? this.server);
    return path;
  }

  async writeKubeconfig(path: string, user: string, groups: readonly string[], server = this.server): Promise<void> {
    const identity = issue(this.authority, { commonName: user, groups });
    const content = kubeconfig({ server, authority: this.authority.certificate, user, identity });
    await writeFile(path, content, { mode: 0o600 });
  }

  async writeAdminKubeconfig(): Promise<void> {
    await this.writeKubeconfig(this.adminKubeconfig, admin.commonName, admin.groups);
  }

  /** Makes one raw API call as the administrator; resolves with any status. */
  call(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    return callApi(this.#target(this.#admin), method, path, body);
  }

  /** Reads as a user that the audit log omits, to wait for a condition. */
  probe(path: string): Promise<ApiAnswer> {
    return callApi(this.#target(this.#probe), 'GET', path);
  }

  /** Creates a token of an existing ServiceAccount, for at least 600 s. Default 3600 s. */
  async serviceAccountToken(namespace: string, name: string, expirationSeconds = 3600): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
    const { status, body } = await this.call('POST', path, request);
    const token = (body as { status?: { token?: string } }).status?.token;
    if (token === undefined) throw new Error(`no token for ${namespace}/${name}: ${status} ${JSON.stringify(body)}`);
    return token;
  }

  /** Runs kubectl, by default as the administrator. */
  async kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<RunResult> {
    const result = await run(this.binaries.kubectl, args, {
      env: {
        PATH: process.env['PATH'],
        HOME: this.directory,
        KUBECONFIG: options.kubeconfig ?? this.adminKubeconfig,
      },
      ...(options.input === undefined ? {} : { input: options.input }),
    });
    if (result.code !== 0 && (options.reject ?? true)) {
      throw new Error(`kubectl ${args.join(' ')} ended with ${result.code}:\n${result.stderr}${result.stdout}`);
    }
    return result;
  }

  /**
   * Opens a proxy in front of the API server; pass its `server` to `kubeconfigFor`. With a script, the proxy terminates TLS
   * and the script sees and changes calls. The plane closes the proxy when it stops.
   * `host`: another address of this machine.
   */
  async proxy(script?: HttpScript, host = '127.0.0.1'): Promise<FaultProxy> {
    const proxy = await FaultProxy.open({
      apiserver: Number(new URL(this.server).port),
      authority: this.authority,
      frontProxy: await readIdentity(this.directory, 'front-proxy-client'),
      host,
      ...(script === undefined ? {} : { script }),
    });
    this.#proxies.add(proxy);
    return proxy;
  }

  protected async closeProxies(): Promise<void> {
    await Promise.all([...this.#proxies].map((proxy) => proxy.close()));
  }

  #target(identity: Identity): { server: string; authority: string; identity: Identity } {
    return { server: this.server, authority: this.authority.certificate, identity };
  }
}
