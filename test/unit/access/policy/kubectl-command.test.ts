import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { readAccessCommand, renderAccessMessage } from '../../../../src/access/policy/kubectl-command.ts';
import { runs } from '../../../support/runs.ts';

const refusalOf = (source: string): string => {
  const read = readAccessCommand(source);
  return 'violation' in read ? `${read.violation.code}: ${read.violation.message}` : 'allowed';
};
const pod = { name: '{{ .Metadata.Name }}', namespace: '{{ .Metadata.Namespace }}' };
const subject = { namespace: 'payments', name: 'web-1', labels: { team: 'a b' }, annotations: {} };

describe('the client in an access command', () => {
  const allowed = [
    `kubectl exec -ti -n ${pod.namespace} ${pod.name} -- /bin/sh`,
    `kubectl exec -it -n ${pod.namespace} -c web pod/${pod.name} -- bundle exec rails console`,
    `kubectl -n payments exec --stdin --tty=true --container=web ${pod.name} -- sh`,
    `kubectl --context production exec ${pod.name} -- sh -c 'tail -f /var/log/*.log | grep -v "GET /" && echo $HOME; exit'`,
    `kubectl exec ${pod.name} -- psql "host=db user={{ index .Metadata.Labels "team" }}"`,
    `kubectl exec -ti ${pod.name} sh`,
    `oc exec ${pod.name} -- sh`,
    `kubectl attach -ti ${pod.name}`,
    `kubectl logs -f --tail=100 ${pod.name}`,
    `kubectl port-forward ${pod.name} 8080:80`,
    `  kubectl exec ${pod.name} -- sh  `,
  ];
  for (const source of allowed) {
    it(`may be ${source}`, () => assert.equal(refusalOf(source), 'allowed'));
  }

  const exec = `kubectl exec -ti ${pod.name} -- sh`;
  const refused: [string, RegExp][] = [
    [
      `${exec}; curl https://example.org/x | sh`,
      /has ";" outside of quotes, .* put text for the pod’s shell between single quotes$/,
    ],
    [`${exec} | sh`, /has "\|" outside/],
    [`${exec} && id`, /has "&" outside/],
    [`${exec} > ~/.ssh/authorized_keys`, /has ">" outside/],
    [`${exec} < /etc/passwd`, /has "<" outside/],
    [`${exec} $(id)`, /has "\$" outside/],
    [`${exec} \`id\``, /has "`" outside/],
    [`${exec} "$(id)"`, /has "\$" between double quotes/],
    [`${exec} "\`id\`"`, /has "`" between double quotes/],
    [`${exec} "\\"; id; \\""`, /between double quotes/],
    [`${exec} !!`, /has "!" outside/],
    [`${exec} \\; id`, /outside of quotes/],
    [`${exec} {a,b}`, /has "\{" outside/],
    [`${exec} # and then`, /has "#" outside/],
    [`${exec} ‘quoted’`, /has "‘" outside/],
    [`${exec} 'open`, /has an unclosed '; close the quotes/],
    [`${exec} "open`, /has an unclosed "; close the quotes/],
    [`curl https://example.org`, /begins with "curl"; allowed are kubectl and oc, for example: kubectl exec/],
    [`PATH=/tmp ${exec}`, /begins with "PATH=\/tmp"/],
    [`/tmp/kubectl exec ${pod.name}`, /begins with "\/tmp\/kubectl"/],
    [`''`, /begins with nothing/],
    [`kubectl`, /has kubectl nothing; allowed are exec, attach, logs, port-forward/],
    [`kubectl apply -f https://example.org/role.yaml`, /has the option "-f"/],
    [`kubectl apply ${pod.name}`, /has kubectl "apply"; allowed are exec/],
    [`kubectl cp ${pod.name}:/x /root/.bashrc`, /has kubectl "cp"/],
    [`kubectl -n exec delete pod ${pod.name}`, /has kubectl "delete"/],
    [
      `kubectl exec -f https://example.org/pod.yaml ${pod.name} -- sh`,
      /has the option "-f"; allowed before -- are -n --namespace/,
    ],
    [`kubectl --kubeconfig=/tmp/x exec ${pod.name} -- sh`, /has the option "--kubeconfig"/],
    [`kubectl exec --server https://example.org ${pod.name} -- sh`, /has the option "--server"/],
    [`kubectl exec ${pod.name} --as=admin -- sh`, /has the option "--as"/],
    [`kubectl exec -n${pod.namespace} ${pod.name} -- sh`, /has the option "-nthe namespace"/],
    [`kubectl exec -{{ index .Metadata.Labels "team" }} ${pod.name} -- sh`, /has the option "-the label"/],
    [`kubectl exec vault-0 -- sh`, /has the target "vault-0"; write \{\{ \.Metadata\.Name \}\} instead/],
    [`kubectl exec deploy/${pod.name} -- sh`, /has the target "deploy\/the name"/],
    [`kubectl exec -c ${pod.name} -- sh`, /has the target nothing/],
    [`kubectl exec -- ${pod.name}`, /has the target nothing/],
    [`kubectl exec -ti {{ .Spec.Name }} -- sh`, /only these placeholders are allowed/],
  ];
  for (const [source, message] of refused) {
    it(`is not ${source}`, () => {
      const refusal = refusalOf(source);
      assert.match(refusal, /^InvalidAccessCommand: accessCommand /);
      assert.match(refusal, message);
    });
  }

  it('is rendered if it is allowed', () => {
    assert.deepEqual(
      renderAccessMessage(`kubectl exec ${pod.name} -- echo {{ index .Metadata.Labels "team" }}`, subject),
      {
        text: "kubectl exec web-1 -- echo 'a b'",
      },
    );
    assert.ok('violation' in renderAccessMessage('curl {{ .Metadata.Name }}', subject));
  });

  it('is the only program that a real shell runs, with exactly the following arguments', () => {
    const piece = fc.constantFrom(
      'a',
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
      '-',
    );
    const tail = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(''));
    const commands = fc.sample(tail, { seed: 23, numRuns: runs(3000) }).flatMap((text) => {
      const message = renderAccessMessage(`kubectl exec ${pod.name} -- ${text}`, subject);
      return 'text' in message ? [message.text] : [];
    });
    assert.ok(commands.length > runs(100), `${commands.length} commands are allowed`);
    // Prints one line for each call of a program of any name.
    const script = [
      'kubectl() { printf \'kubectl %s\\n\' "$*"; }',
      'command_not_found_handle() { printf \'other %s\\n\' "$*"; }',
      ...commands.map((command) => `${command}`),
    ].join('\n');
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
    assert.equal(stderr, '');
    const lines = stdout.trimEnd().split('\n');
    assert.equal(lines.length, commands.length);
    for (const line of lines) assert.match(line, /^kubectl exec web-1 --/);
  });
});
