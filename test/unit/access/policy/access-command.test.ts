import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import {
  type CommandSubject,
  parseAccessCommand,
  renderAccessCommand,
} from '../../../../src/access/policy/access-command.ts';
import { wordsOf } from '../../../../src/access/policy/shell-words.ts';
import { runs } from '../../../support/runs.ts';

const pod: CommandSubject = {
  namespace: 'payments',
  name: 'web-1',
  labels: { app: 'web', 'team.example.com/name': 'money' },
  annotations: {
    note: 'it\'s $(id); `id` "x" \\',
    plain: 'a.b-c',
    option: '--as=root',
    escape: 'a\u001b[2Jb',
    rtl: 'a\u202eb',
  },
};

function render(source: string, subject: CommandSubject = pod): string {
  const parsed = parseAccessCommand(source);
  if ('violation' in parsed) return `refused: ${parsed.violation.code} ${parsed.violation.message}`;
  const rendered = renderAccessCommand(parsed.command, subject);
  return 'violation' in rendered ? `refused: ${rendered.violation.message}` : rendered.text;
}

describe('access command', () => {
  for (const [source, text] of [
    [
      'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      'kubectl exec -ti -n payments web-1 -- /bin/sh',
    ],
    ['{{.Metadata.Name}}{{  .Metadata.Namespace }}', 'web-1payments'],
    ['x {{ index .Metadata.Labels "team.example.com/name" }}', 'x money'],
    ['x {{index  .Metadata.Annotations  "note"}} y', `x 'it'\\''s $(id); \`id\` "x" '\\\\ y`],
    ['x "{{ index .Metadata.Annotations "plain" }}"', 'x "a.b-c"'],
    ['  plain text }}\n', 'plain text }}'],
  ] as const) {
    it(`renders ${JSON.stringify(source)}`, () => assert.equal(render(source), text));
  }

  for (const source of [
    '{{ .Metadata.UID }}',
    '{{ .metadata.name }}',
    '{{- .Metadata.Name }}',
    '{{ .Metadata.Name | printf "%s" }}',
    '{{ .Metadata.Labels.app }}',
    '{{ index .Metadata.Labels app }}',
    '{{ index .Metadata.Labels "a" "b" }}',
    '{{ index .Metadata.Labels "a\\"b" }}',
    '{{ index .Metadata.Finalizers "a" }}',
    '{{ if true }}x{{ end }}',
    '{{/* note */}}',
    '{{ .Metadata.Name',
    'x {{',
    '{{{ .Metadata.Name }}',
  ]) {
    it(`rejects ${JSON.stringify(source)} and lists the allowed placeholders`, () => {
      const text = render(source);
      assert.match(
        text,
        /^refused: InvalidAccessCommand .*only these placeholders are allowed: \{\{ \.Metadata\.Name \}\}, /,
      );
    });
  }

  for (const [title, source, expected] of [
    ['an empty command', ' ', /is empty/],
    ['a line break', 'a\nb', /U\+000A/],
    ['an escape character', 'a\u001b[31m', /U\+001B/],
    ['a bidi override', 'a\u202e', /U\+202E/],
    ['a command that is too long', 'x'.repeat(4097), /4097 characters/],
    [
      'a label that the pod lacks',
      '{{ index .Metadata.Labels "nope" }}',
      /label "nope", which pod web-1 does not have/,
    ],
    ['an inherited property', '{{ index .Metadata.Labels "constructor" }}', /does not have/],
    ['a value that would be an option', '{{ index .Metadata.Annotations "option" }}', /begins with "-"/],
    ['control characters in a value', '{{ index .Metadata.Annotations "escape" }}', /U\+001B/],
    ['bidi overrides in a value', '{{ index .Metadata.Annotations "rtl" }}', /U\+202E/],
  ] as const) {
    it(`rejects ${title}`, () => assert.match(render(source), new RegExp(`^refused: .*${expected.source}`)));
  }

  for (const before of ['"', "'", 'a "b" "', `'a' "b'`, `'\\" `]) {
    it(`rejects a value that needs quotes after ${before}`, () => {
      assert.match(
        render(`x ${before}{{ index .Metadata.Annotations "note" }}`),
        /write the placeholder as a word of its own/,
      );
    });
  }

  it('rejects a command that becomes too long', () => {
    const long = { ...pod, annotations: { note: 'x'.repeat(5000) } };
    assert.match(
      render('{{ index .Metadata.Annotations "note" }}', long),
      /is longer than 4096 characters when rendered/,
    );
  });

  it('renders a command of exactly 4096 characters, and rejects one more character anywhere', () => {
    const note = '{{ index .Metadata.Annotations "note" }}';
    const filled = (length: number): CommandSubject => ({ ...pod, annotations: { note: 'x'.repeat(length) } });
    assert.equal(render('x'.repeat(4096)), 'x'.repeat(4096));
    assert.equal(render(note, filled(4096)), 'x'.repeat(4096));
    assert.equal(render(`${note} y`, filled(4094)), `${'x'.repeat(4094)} y`);
    for (const [source, length] of [
      [note, 4097],
      [`${note}y`, 4096],
      [`${note}${note}`, 4096],
      [`y${note}`, 4096],
    ] as const) {
      assert.match(
        render(source, filled(length)),
        /is longer than 4096 characters when rendered/,
        `${source.slice(-3)} ${length}`,
      );
    }
  });

  it('accepts any text without throwing', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('{{', '}}', '.Metadata.Name', 'index', '"', "'", '$', '`', '\\', ' '),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => void render(pieces.join(''))),
      { seed: 7, numRuns: runs(5000) },
    );
  });

  it('behaves in a real shell as with a harmless value', () => {
    const literal = fc
      .array(fc.constantFrom('a', ' ', '"', "'", `'"'`, `"'"`, "'\\$`() '", '"(#) {}"', '\\', '$', '`'), {
        maxLength: 4,
      })
      .map((parts) => parts.join(''));
    const hostile = ['a', ' ', '"', "'", '\\', '$', '`', '(', ')', '*', ';', '&', '|', '!', '~', 'é', '$(echo pwned)'];
    const value = fc.array(fc.constantFrom(...hostile), { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
    const samples = fc
      .sample(fc.tuple(literal, value, literal), { seed: 11, numRuns: runs(6000, 600) })
      .flatMap(([before, note, after]) => {
        const source = `printf '%s\\0' ${before}{{ index .Metadata.Annotations "note" }}${after}`;
        const parsed = parseAccessCommand(source);
        if ('violation' in parsed || 'problem' in wordsOf(parsed.command)) return [];
        const command = render(source, { ...pod, annotations: { note } });
        // Excludes $$, because each shell has another process id.
        if (command.startsWith('refused: ') || command.includes('$$')) return [];
        const marker = isQuoted(note) ? QUOTED_MARKER : MARKER;
        return [{ note, marker, command, harmless: render(source, { ...pod, annotations: { note: marker } }) }];
      });
    assert.ok(samples.length > 100, `${samples.length} commands to run`);
    const outputs = runAll(samples.flatMap(({ command, harmless }) => [command, harmless]));
    let seen = 0;
    for (const [index, { note, marker, command }] of samples.entries()) {
      const [actual = '', reference = ''] = outputs.slice(2 * index);
      assert.equal(
        actual,
        reference.replaceAll(marker, () => note),
        command,
      );
      if (reference.includes(marker)) seen += 1;
    }
    assert.ok(seen > 50, `${seen} values printed`);
  }).timeout(120_000);
});

const MARKER = 'MARKER';
/** A value that is rendered in quotes. After `$a`, a plain value extends the variable's name, and a quoted one does not. */
const QUOTED_MARKER = 'MAR KER';
const isQuoted = (note: string): boolean =>
  render('{{ index .Metadata.Annotations "note" }}', { ...pod, annotations: { note } }) !== note;
const END = '\u0001\u0001';

/** The standard output of each command. Each runs in its own shell, because a literal may be invalid shell. */
function runAll(commands: readonly string[]): string[] {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const script = commands
    .map((command) => `sh -c ${quoted(command)} </dev/null 2>/dev/null; printf '${END}'`)
    .join('\n');
  const run = spawnSync('sh', [], {
    input: script,
    encoding: 'utf8',
    timeout: 110_000,
    cwd: '/',
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.equal(run.status, 0);
  return run.stdout.split(END);
}
