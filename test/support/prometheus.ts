import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { boardQueries } from '../../charts/boards.ts';
import { metricsIn } from '../../docs/generate/alerts.ts';
import { issue } from '../../sandbox/pki.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { freePorts } from '../../sandbox/ports.ts';
import { until } from '../../sandbox/wait.ts';

/** What to scrape for each job: a port of this machine, or the Pods of a cluster. */
type Jobs = Readonly<Record<string, number | ScrapedPods>>;

/** Scraped through the API server, as an administrator. */
export interface ScrapedPods {
  readonly cluster: PlaneClient;
  readonly namespace: string;
  /** With the metrics port 8080. */
  readonly names: readonly string[];
}

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

/** The rules of the chart for a feature, with which an alert need not hold for minutes before it fires. */
export const quickRules = (feature: string): string =>
  readFileSync(`charts/drawbridge/files/rules/${feature}.yaml`, 'utf8').replaceAll(/^( +for: )\d+m$/gm, '$11s');

/** A real Prometheus, which scrapes servers and evaluates rules twice a second. */
export class Prometheus {
  readonly url: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
  }

  /** `rules`: the content of rules files. */
  static async start(jobs: Jobs, rules: readonly string[] = []): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'drawbridge-prometheus-'));
    const [port = 0] = await freePorts(1);
    await Promise.all(rules.map((text, index) => writeFile(join(folder, `rules-${index}.yaml`), text)));
    const scraping = async ([job, target]: [string, Jobs[string]]): Promise<object> => ({
      job_name: job,
      file_sd_configs: [{ files: [join(folder, `${job}.json`)], refresh_interval: '1s' }],
      ...(typeof target === 'number'
        ? {}
        : { scheme: 'https', tls_config: await administratorOf(target.cluster, folder) }),
    });
    const configuration = {
      global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
      rule_files: [join(folder, 'rules-*.yaml')],
      scrape_configs: await Promise.all(Object.entries(jobs).map(scraping)),
    };
    await writeFile(join(folder, 'prometheus.yaml'), stringify(configuration));
    const log = openSync(join(folder, 'log'), 'a');
    const args = [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const child = spawn('prometheus', args, { stdio: ['ignore', log, log] });
    process.once('exit', () => child.kill('SIGKILL'));
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, folder, child);
    await prometheus.scrape(jobs);
    const isReady = (): Promise<boolean> =>
      fetch(`${prometheus.url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until('Prometheus to be ready', isReady, { timeoutMs: 30_000 }).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await readFile(join(folder, 'log'), 'utf8')}`);
    });
    return prometheus;
  }

  /** Replaces the targets of jobs. */
  async scrape(jobs: Jobs): Promise<void> {
    for (const [job, target] of Object.entries(jobs))
      await writeFile(join(this.#folder, `${job}.json`), JSON.stringify(targetsOf(target)));
  }

  /** The number of series that a query returns now. Rejects if Prometheus does not accept it. */
  async series(query: string): Promise<number> {
    const { result } = await this.#get<{ result: unknown[] }>(`query?query=${encodeURIComponent(query)}`);
    return result.length;
  }

  /** Resolves once every query of a board returns data, without those that name a metric of `absent`, which the server does not expose yet. */
  async showBoard(board: string, absent: readonly string[] = []): Promise<void> {
    const queries = boardQueries[board] ?? [];
    const expected = queries.filter((query) => absent.every((name) => !metricsIn(query).has(name)));
    const counts = () => Promise.all(expected.map(async (query) => ({ query, series: await this.series(query) })));
    const empty = async () => (await counts()).filter(({ series }) => series === 0);
    await until(`all ${expected.length} queries to return data`, async () => (await empty()).length === 0, {
      timeoutMs: 20_000,
      everyMs: 500,
    }).catch(async (error: Error) => {
      throw new Error(`${error.message}; without data: ${(await empty()).map(({ query }) => query).join('\n')}`);
    });
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#get<{ groups: { rules: Rule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  /** Resolves once an alert fires, or no longer does. */
  async alertIs(state: 'firing' | 'inactive', alert: string): Promise<void> {
    const isSo = async (): Promise<boolean> =>
      (await this.rules()).some((rule) => rule.name === alert && rule.state === state);
    await until(`${alert} to be ${state}`, isSo, { timeoutMs: 45_000, everyMs: 100 });
  }

  async stop(): Promise<void> {
    if (this.#child.kill()) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true });
  }

  async #get<Data>(path: string): Promise<Data> {
    const answer = await fetch(`${this.url}/api/v1/${path}`);
    const body = (await answer.json()) as { data: Data; error?: string };
    if (!answer.ok) throw new Error(`${path}: ${body.error}`);
    return body.data;
  }
}

function targetsOf(target: Jobs[string]): object[] {
  if (typeof target === 'number') return [{ targets: [`127.0.0.1:${target}`] }];
  const { cluster, namespace, names } = target;
  return names.map((name) => ({
    targets: [new URL(cluster.server).host],
    labels: { __metrics_path__: `/api/v1/namespaces/${namespace}/pods/${name}:8080/proxy/metrics`, pod: name },
  }));
}

/** Writes the certificate of an administrator into the folder. */
async function administratorOf({ authority }: PlaneClient, folder: string): Promise<object> {
  const { certificate, key } = issue(authority, { commonName: 'prometheus', groups: ['system:masters'] });
  const files = { ca_file: authority.certificate, cert_file: certificate, key_file: key };
  const paths = Object.entries(files).map(async ([name, content]) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode: 0o600 });
    return [name, path];
  });
  return Object.fromEntries(await Promise.all(paths));
}
