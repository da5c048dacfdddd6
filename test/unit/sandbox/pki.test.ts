import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createAuthority, issue } from '../../../sandbox/pki.ts';

describe('sandbox certificates', () => {
  const authority = createAuthority('ca');
  const ca = new X509Certificate(authority.certificate);

  it('has an authority that signs itself', () => {
    assert.ok(ca.ca);
    assert.ok(ca.verify(ca.publicKey));
    assert.ok(ca.checkIssued(ca));
  });

  it('issues a client certificate with user and groups', () => {
    const { certificate, key } = issue(authority, { commonName: 'alice', groups: ['dev', 'on call'] });
    const leaf = new X509Certificate(certificate);
    assert.equal(leaf.subject, 'O=dev\nO=on call\nCN=alice');
    assert.ok(leaf.verify(ca.publicKey));
    assert.ok(leaf.checkIssued(ca));
    assert.ok(leaf.checkPrivateKey(createPrivateKey(key)));
    assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.2']);
    assert.ok(!leaf.ca);
  });

  it('issues a server certificate for names and addresses', () => {
    const { certificate } = issue(authority, { commonName: 's', serves: ['127.0.0.1', '::1', 'svc.ns.svc'] });
    const leaf = new X509Certificate(certificate);
    for (const address of ['127.0.0.1', '::1']) assert.equal(leaf.checkIP(address), address);
    assert.equal(leaf.checkHost('svc.ns.svc'), 'svc.ns.svc');
    assert.equal(leaf.checkHost('other.ns.svc'), undefined);
    assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  });

  it('can issue one that has expired', () => {
    const leaf = new X509Certificate(issue(authority, { commonName: 'x', days: -1 }).certificate);
    assert.ok(Date.parse(leaf.validTo) < Date.now());
    assert.ok(Date.parse(leaf.validFrom) < Date.parse(leaf.validTo));
  });
});
