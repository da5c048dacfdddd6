import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { renderAccessCommand } from '../../src/access/policy/access-command.ts';

const placeholders = [
  '{{ .Metadata.Namespace }}',
  '{{ index .Metadata.Labels "app" }}',
  '{{ index .Metadata.Annotations "note" }}',
];
const literal = fc.constantFrom(
  ...[
    'a',
    ' ',
    ' ',
    ' ',
    '"',
    "'",
    '\\',
    '$',
    '`',
    '(',
    ')',
    ';',
    '&',
    '|',
    '<',
    '>',
    '*',
    '~',
    '#',
    '!',
    '{',
    '=',
    '%',
  ],
  ...['"b"', "'c'", `'"'`, `"'"`, "'\\$`() '", '"(#) {}"', '$(id)', '"$0"', "'\\'", "'\\''", '"\\"', 'self', 'ls'],
);
/** After the pod, because most would not be a call of kubectl before it. */
const tail = fc
  .array(fc.oneof({ weight: 3, arbitrary: literal }, { weight: 2, arbitrary: fc.constantFrom(...placeholders) }), {
    maxLength: 8,
  })
  .map((parts) => parts.join(''));
const value = fc
  .array(
    fc.constantFrom(
      ...['a', ' ', '"', "'", '\\', '$', '`', '(', ')', '*', ';', '&', '|', '<', '>', '!', '~', '#', '{', '}', 'é'],
      ...['=ls', '%self', '$(echo pwned)', '; echo pwned', "' ; echo pwned '", '^a^b', ','],
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join(''));
const values = fc.record({ name: value, namespace: value, app: value, note: value });

const harmless = { name: 'VALUEnameE', namespace: 'VALUEnamespaceE', app: 'VALUEappE', note: 'VALUEnoteE' };

interface Sample {
  readonly source: string;
  readonly text: string;
  /** The arguments that kubectl must get. */
  readonly args: readonly string[];
}

/**
 * Random access commands that are valid for pods with hostile names, labels, and annotations. The
 * arguments are those of the same command with harmless values, as `sh` reads it.
 */
export function sampledCommands(count: number): readonly Sample[] {
  const rendered = fc.sample(fc.tuple(tail, values), { seed: 11, numRuns: count }).flatMap(([words, hostile]) => {
    const source = `kubectl exec {{ .Metadata.Name }} ${words}`;
    const render = ({ name, namespace, app, note }: typeof hostile) =>
      renderAccessCommand(source, { name, namespace, labels: { app }, annotations: { note } });
    const [message, reference] = [render(hostile), render(harmless)];
    return 'text' in message && 'text' in reference ? [{ source, hostile, text: message.text, reference }] : [];
  });
  const calls = callsIn(
    'sh',
    rendered.map(({ reference }) => reference.text),
  );
  return rendered.map(({ source, hostile, text }, index) => ({
    source,
    text,
    args: (calls[index] ?? []).map((arg) =>
      arg.replace(/VALUE(name|namespace|app|note)E/g, (_, name: keyof typeof harmless) => hostile[name]),
    ),
  }));
}

/** The arguments of kubectl, which each of the commands must call once, and no other program. */
export function callsIn(shell: string, commands: readonly string[]): readonly (readonly string[])[] {
  const print = (args: string): string => `printf '\\001%s' ${args}; printf '\\002'`;
  const kubectl = shell === 'fish' ? `function kubectl; ${print('$argv')}; end` : `kubectl() { ${print('"$@"')}; }`;
  // fish reads no commands from a socket, which Node passes.
  const { error, stdout, stderr } = spawnSync('sh', ['-c', `cat | ${shell}`], {
    input: `${[kubectl, ...commands].join('\n')}\n`,
    encoding: 'utf8',
    cwd: '/',
    timeout: 60_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.equal(error, undefined);
  assert.equal(stderr, '');
  const calls = stdout.split('\u0002');
  assert.equal(calls.pop(), '');
  assert.equal(calls.length, commands.length);
  return calls.map((call) => call.split('\u0001').slice(1));
}
