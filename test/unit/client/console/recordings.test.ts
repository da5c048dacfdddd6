import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { ClusterConnection } from '../../../../src/client/cluster-connection.ts';
import { type Call, Refusal } from '../../../../src/client/console/call.ts';
import { cast, verdict } from '../../../../src/client/console/handlers.ts';
import type { RunResult } from '../../../../src/client/console/wire.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';

const name = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
const header = '{"version":2,"width":80,"height":24}';
const output = '[0.1,"o","\\u001b[6n\u009b"]';

describe('sessions and recordings in the console', () => {
  let parts: (string | Error)[];
  let asked: string[];
  let written: string;
  let answer: unknown;
  beforeEach(() => {
    [parts, asked, written, answer] = [[], [], '', undefined];
  });

  const stream = async (path: string): Promise<AsyncIterable<Uint8Array>> => {
    asked.push(path);
    if (parts[0] instanceof Error) throw parts[0];
    return (async function* () {
      for (const part of parts) {
        if (part instanceof Error) throw part;
        yield Buffer.from(part);
      }
    })();
  };
  const connection = { cluster: { own: { stream } }, program: 'drawbridge', kubectlFlags: [] };
  const callOf = (query: Record<string, string>): Call => {
    const call: Partial<Call> = {
      query: new URLSearchParams(query),
      connection: connection as unknown as ClusterConnection,
      signal: new AbortController().signal,
      write: async (bytes) => {
        written += Buffer.from(bytes).toString();
      },
      line: async (value) => {
        written += `${JSON.stringify(value)}\n`;
      },
      json: async (value) => {
        answer = value;
      },
    };
    return call as Call;
  };
  const show = (from: string, given: Record<string, string> = {}): Promise<void> =>
    cast(callOf({ from, namespace: 'payments', name, ...given }));
  const run = async (): Promise<RunResult> => ({ exitCode: 0, output: 'INTACT', messages: [], line: '' });

  it('passes the lines of a session or a recording on unchanged', async () => {
    parts = [`${header}\n${output.slice(0, 5)}`, `${output.slice(5)}\n`];
    for (const from of ['sessions', 'recordings']) {
      written = '';
      await show(from);
      assert.equal(written, `${header}\n${output}\n`);
    }
    const path = '/apis/gateway.drawbridge.dev/v1alpha1/namespaces/payments';
    assert.deepEqual(asked, [`${path}/sessions/${name}/log`, `${path}/recordings/${name}/log`]);
  });

  for (const [what, given] of [
    ['a place that it does not know', { from: 'pods' }],
    ['a name that is no UUID', { name: '../x' }],
    ['no name', { name: '' }],
    ['a namespace that leads elsewhere', { namespace: 'a/b' }],
  ] as const) {
    it(`asks the API server nothing for ${what}`, async () => {
      await assert.rejects(show('recordings', given));
      await assert.rejects(
        verdict(callOf({ namespace: 'payments', name, ...given, ...('from' in given && { name: '' }) }), run),
      );
      assert.deepEqual(asked, []);
    });
  }

  it('refuses what the gateway or RBAC refuses, in the words of the commands', async () => {
    parts = [new ApiError(403, 'Forbidden', '403: no')];
    const words = /denied: no; ask an administrator to bind the ClusterRole drawbridge-session-auditor/;
    await assert.rejects(show('sessions'), words);
    await assert.rejects(verdict(callOf({ namespace: 'payments', name }), run), words);
  });

  it('says at the end what is wrong with a recording, or that the view was lost', async () => {
    parts = [`${header}\n${output}\nx\n`];
    await show('recordings');
    assert.match(written, /\n\{"message":"line 3 of the recording is not an event .* only the lines before it/);
    [written, parts] = ['', [`${header}\n`, new TransportError('GET: reset', undefined, false)]];
    await show('sessions');
    assert.match(
      written,
      /\n\{"message":"lost the view: .*; the session may still be open; watch it again: drawbridge sess/,
    );
  });

  it('refuses what is no recording', async () => {
    parts = ['<html>\n'];
    await assert.rejects(show('recordings'), /line 1 is not the header of a recording/);
    assert.equal(written, '');
  });

  it('verifies the recording in a folder like that of the gateway, and removes it', async () => {
    parts = [`${header}\n`, `${output}\n`];
    let folder = '';
    await verdict(callOf({ namespace: 'payments', name }), async (call, flags) => {
      assert.deepEqual([call, flags[1]], [{ command: 'audit verify' }, `--session=${name}`]);
      folder = flags[0]?.replace('--recordings=', '') ?? '';
      assert.equal(readFileSync(`${folder}/payments/${name}.cast`, 'utf8'), `${header}\n${output}\n`);
      return run();
    });
    assert.deepEqual(answer, await run());
    assert.equal(existsSync(folder), false);
  });

  it('verifies no recording that is too large or that breaks off, and keeps no part of it', async () => {
    let folder = '';
    const never = async (_: unknown, flags: readonly string[]): Promise<RunResult> => {
      folder = flags.join();
      return run();
    };
    parts = [header, new TransportError('GET: reset', undefined, false)];
    await assert.rejects(verdict(callOf({ namespace: 'payments', name }), never), /reset/);
    parts = [header, output];
    const call = callOf({ namespace: 'payments', name });
    const isRefused = (error: unknown): boolean => error instanceof Refusal && error.status === 413;
    await assert.rejects(verdict(call, never, header.length), isRefused);
    assert.equal(folder, '');
  });
});
