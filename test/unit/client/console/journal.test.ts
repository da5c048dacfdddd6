import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ClusterConnection } from '../../../../src/client/cluster-connection.ts';
import { type Call, Refusal } from '../../../../src/client/console/call.ts';
import { JournalFolder } from '../../../../src/client/console/journal.ts';
import type { Journal } from '../../../../src/client/console/wire.ts';
import { ApiError } from '../../../../src/kube/errors.ts';

const line = '{"chain":"0123456789abcdef01234567"}\n';
const pod = (name: string, container = 'drawbridge'): object => ({
  metadata: { name },
  spec: { containers: [{ name: container }] },
});

describe('the journal of the console', () => {
  let journal: JournalFolder;
  /** What the API server has: logs by the name of the pod, and what was asked. */
  let logs: Record<string, string | Error>;
  let asked: string[];
  beforeEach(() => {
    journal = new JournalFolder();
    [logs, asked] = [{}, []];
  });
  afterEach(() => journal.end());

  const cluster = {
    client: {
      get: async (_: unknown, { namespace, name }: { readonly namespace: string; readonly name: string }) => {
        asked.push(`${namespace}/${name}`);
        if (name !== 'drawbridge-audit-heads') throw new ApiError(404, 'NotFound', '404: none');
        return { kind: 'ConfigMap', metadata: { name } };
      },
      list: async (_: unknown, options: { readonly namespace: string; readonly labelSelector: string }) => {
        asked.push(`${options.namespace} ${options.labelSelector}`);
        return { items: [...Object.keys(logs).map((name) => pod(name)), pod('doctor', 'other')] };
      },
    },
    own: {
      stream: async (path: string) => {
        asked.push(path);
        const log = logs[/pods\/([^/]+)\/log/.exec(path)?.[1] ?? ''];
        if (log instanceof Error) throw log;
        return chunksOf(log ?? '');
      },
    },
  };
  const connection = { cluster, kubectlFlags: [] } as unknown as ClusterConnection;
  async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  }
  const call = async (
    method: string,
    query: Record<string, string> = {},
    body: AsyncIterable<Uint8Array> = chunksOf(''),
  ) => {
    let answer: unknown;
    const given: Partial<Call> = {
      method,
      query: new URLSearchParams(query),
      connection,
      body,
      signal: new AbortController().signal,
      json: async (value) => {
        answer = value;
      },
    };
    await journal.answer(given as Call);
    return answer as Journal;
  };
  const put = (name: string, text = line): Promise<Journal> => call('PUT', { name }, chunksOf(text));

  it('keeps dropped files in a folder that only this user may read, and removes it at the end', async () => {
    assert.deepEqual(await put('audit.jsonl'), {
      files: [{ name: 'audit.jsonl', bytes: line.length, from: 'file' }],
      problems: [],
    });
    const [path = ''] = journal.paths;
    assert.equal(readFileSync(path, 'utf8'), line);
    assert.deepEqual(
      [path, dirname(path)].map((one) => statSync(one).mode & 0o777),
      [0o600, 0o700],
    );
    assert.deepEqual((await call('DELETE')).files, []);
    assert.throws(() => statSync(path));
    await journal.end();
    assert.throws(() => statSync(dirname(path)));
  });

  for (const [name, stored] of [
    ['../../etc/passwd', '-..-etc-passwd'],
    ['..', 'journal'],
    ['', 'journal'],
    [`/${'a'.repeat(300)}`, 'a'.repeat(100)],
    ['--key=x\n', '--key-x-'],
  ] as const) {
    it(`takes no path from the page: ${JSON.stringify(name.slice(0, 20))}`, async () => {
      const { files } = await put(name);
      assert.deepEqual(
        files.map((file) => file.name),
        [stored],
      );
      assert.match(journal.paths[0] ?? '', new RegExp(`/drawbridge-console-[^/]+/${stored}$`));
    });
  }

  it('replaces no file', async () => {
    await put('audit.jsonl');
    await assert.rejects(put('audit.jsonl', 'other'), (error) => error instanceof Refusal && error.status === 409);
    assert.equal(readFileSync(journal.paths[0] ?? '', 'utf8'), line);
  });

  it('keeps nothing of a file that is too large, or whose page has gone', async () => {
    async function* large(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 65; i++) yield Buffer.alloc(1024 * 1024);
    }
    await assert.rejects(
      call('PUT', { name: 'a' }, large()),
      /a is too large: a file has at most 64 MiB, all have 256 MiB/,
    );
    // biome-ignore lint/correctness/useYield: it fails before its first part.
    async function* gone(): AsyncGenerator<Uint8Array> {
      throw new Error('aborted');
    }
    await assert.rejects(call('PUT', { name: 'a' }, gone()), /aborted/);
    assert.deepEqual(await call('GET'), { files: [], problems: [] });
    await put('a');
  });

  it('reads the heads, then the logs of the pods of the server that have lines of a journal, again at each call', async () => {
    logs = { a: `{"level":"info"}\n${line}`, b: '{"level":"info"}\n' };
    await put('dropped.jsonl');
    for (let i = 0; i < 2; i++) {
      const { files, problems } = await call('POST', { namespace: 'db' });
      assert.deepEqual(
        files.map(({ name, from }) => [name, from]),
        [
          ['dropped.jsonl', 'file'],
          ['a.log', 'pod'],
        ],
      );
      assert.deepEqual(problems, []);
    }
    assert.equal(journal.namespace, 'db');
    assert.equal(JSON.parse(readFileSync(journal.heads[0] ?? '', 'utf8')).metadata.name, 'drawbridge-audit-heads');
    assert.equal(journal.heads.length, 1);
    assert.deepEqual(asked.slice(0, 6), [
      'db app.kubernetes.io/name=drawbridge',
      'db/drawbridge-audit-heads',
      'db/drawbridge-gateway-audit-heads',
      'db/drawbridge-inventory-audit-heads',
      '/api/v1/namespaces/db/pods/a/log?container=drawbridge&limitBytes=67108865',
      '/api/v1/namespaces/db/pods/b/log?container=drawbridge&limitBytes=67108865',
    ]);
  });

  it('says which logs it may not read, and reads the others', async () => {
    const denied = 'pods "a" is forbidden: User "eve" cannot get resource "pods/log"';
    logs = { a: new ApiError(403, 'Forbidden', `403: ${denied}`), b: line };
    const { files, problems } = await call('POST');
    assert.deepEqual(
      files.map(({ name }) => name),
      ['b.log'],
    );
    assert.match(problems.join(), /^cannot read the log of pod a: denied: .*ask an administrator for this permission$/);
  });

  it('says what to do if no pod has a journal', async () =>
    assert.match(
      (await call('POST')).problems.join(),
      /namespace drawbridge-system has the journal in its log; .*add the files$/,
    ));
});
