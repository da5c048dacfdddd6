import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditLog, parseAuditEvent } from '../../../sandbox/audit-log.ts';
import { pluck } from '../../support/pluck.ts';

const event = (auditID: string, fields: object = {}): string =>
  `${JSON.stringify({ auditID, verb: 'get', user: { username: 'alice' }, objectRef: { resource: 'pods' }, ...fields })}\n`;

describe('audit log', () => {
  let folder: string;
  let path: string;
  let log: AuditLog;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'audit-'));
    path = join(folder, 'audit.log');
    await writeFile(path, '');
    log = new AuditLog(path);
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('reads the lines since the last read', async () => {
    await appendFile(path, event('1'));
    assert.equal(log.calls().length, 1);
    await appendFile(path, event('2') + event('3'));
    assert.equal(log.calls().length, 3);
  });

  it('leaves an incomplete line for the next read', async () => {
    const line = event('1', { user: { username: 'zoë' } });
    await appendFile(path, line.slice(0, 30));
    assert.deepEqual(log.calls(), []);
    await appendFile(path, line.slice(30));
    assert.deepEqual(pluck(log.calls(), 'user'), ['zoë']);
  });

  it('counts only calls after a position', async () => {
    await appendFile(path, event('1', { user: { username: 'zoë' } }));
    const since = log.mark();
    await appendFile(path, event('2', { verb: 'list' }) + event('3', { verb: 'list' }) + event('4'));
    assert.deepEqual(log.counts({ since }), [
      { user: 'alice', verb: 'list', resource: 'pods', count: 2 },
      { user: 'alice', verb: 'get', resource: 'pods', count: 1 },
    ]);
  });

  it('counts a watch once, although the API server logs its start and its end', async () => {
    await appendFile(path, event('1', { verb: 'watch', stage: 'ResponseStarted' }));
    const since = log.mark();
    await appendFile(path, event('1', { verb: 'watch', stage: 'ResponseComplete' }));
    assert.equal(log.calls({ verbs: ['watch'] }).length, 1);
    assert.equal(log.calls({ since }).length, 0);
  });

  it('filters by user, verb, and resource together', async () => {
    await appendFile(path, event('1') + event('2', { user: { username: 'bob' } }) + event('3', { verb: 'create' }));
    assert.equal(log.calls({ user: 'alice' }).length, 2);
    assert.equal(log.calls({ user: 'alice', verbs: ['create', 'delete'] }).length, 1);
    assert.equal(log.calls({ resources: ['roles'] }).length, 0);
  });
});

describe('audit event', () => {
  it('has the subresource, the code, and the impersonated user', () => {
    const line = event('1', {
      verb: 'create',
      objectRef: { resource: 'pods', subresource: 'exec', namespace: 'a', name: 'web' },
      responseStatus: { code: 403 },
      impersonatedUser: { username: 'bob' },
    });
    const call = parseAuditEvent(line)?.call;
    assert.equal(call?.resource, 'pods/exec');
    assert.equal(call?.namespace, 'a');
    assert.equal(call?.code, 403);
    assert.equal(call?.impersonated, 'bob');
  });

  it('requires only its id', () => {
    assert.equal(parseAuditEvent('{"auditID":"1","requestURI":"/readyz"}')?.call.uri, '/readyz');
  });

  for (const line of ['', 'not json', 'null', '{}', '[]', '{"auditID":1}']) {
    it(`is not ${JSON.stringify(line)}`, () => assert.equal(parseAuditEvent(line), undefined));
  }
});
