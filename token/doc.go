// Package token is what a session carries from a write or a read to its next
// read: which positions a server must have reached to serve it.
//
// A Token is an immutable value with one Entry for each cluster (or for each set
// of clusters, where a writer did not know which one it was). Others treat its
// text as opaque.
//
//	tok, err := token.Parse(request.Header.Get("..."))  // what the client holds
//	tok = tok.With(token.Entry{Key: k, Write: w})       // a write was acknowledged at w
//	tok = tok.With(token.Entry{Key: k, Floor: f})       // a read has seen the state at f
//	tok = tok.Merge(other)                              // another thread of work joins
//	text := tok.String()                                // hand it on
//
// The one trap: a text that does not parse is not the same as no token. What it
// should have covered is unknown, so the read must fail or go to the primary.
//
// # A timeline
//
// One user, two services, a primary P and a replica R. Positions are
// timeline:LSN.
//
//	service A                    service B                      R has replayed
//	writes on P, commit at 1:90  .                              1:70
//	token {W 1:90} ------------> reads with it: R has less      1:80
//	.                            than 1:90, so P serves
//	.                            reads with it: R serves,       1:95
//	.                            token {W 1:90, F 1:95}
//	.                            reads from another replica     (at 1:92: not
//	.                            with it: below F, not legal     eligible)
//	P dies, R is promoted; timeline 2 begins at 1:95
//	writes, commit at 2:99       .
//	token {W 2:99, former 1:90}  1:90 is before 1:95: nothing is lost
//
// Had the first commit been at 1:97, the last line would report a write that
// failover may have lost.
//
// # Merging
//
// Merge, With and Mark form a join: order, grouping and repetition make no
// difference, and no constraint is ever lost. For each key the larger Write and
// the larger Floor stay, by timeline first. The highest write of an older timeline
// stays as Former until it was compared with the point where its timeline was
// left; there is one Former, and with writes of several older timelines it says that
// something on the oldest of them may be lost. Marks (there is something, but its position is not known) add up, and the
// later time of minting stays. Only Replace takes anything away: it is for
// whoever has resolved a mark or judged a Former.
//
// A mark under a key with wildcards is about many clusters and cannot be removed
// by one that has resolved it. It stays, and the entry of the resolved cluster
// says BroadCovered. For a key and the marks of all broader keys there are three
// states, none < resolved < pending. Merging takes the larger one, so a mark that
// one side has not resolved is pending in the result; a new broad mark is pending
// for all.
//
// # Signing
//
// A token says nothing secret, and whoever makes one up can at worst make their
// own reads wait. To keep clients from doing even that, sign what leaves and
// verify what comes back; the keys can be changed at any time:
//
//	signer, err := token.NewSigner(token.Secret{ID: "k2", Key: k2}, token.Secret{ID: "k1", Key: k1})
//	text := signer.Sign(tok)           // by k2
//	tok, err := signer.Verify(text)    // by k2 or k1; an unsigned text is an error
//
// # Limits
//
// A token has a bounded size, whatever is merged into it. What has no room turns
// into something that asks for more, never less:
//
//   - Of more than MaxEntries entries the smallest keys are kept; Others says so
//     and OthersConstrain whether it is about a cluster, which only the primary
//     can serve then.
//   - More than MaxSeenNodes seen nodes become SeenPrimary. So do all of them in a
//     token of more than six entries, and there a Former becomes Wrote.
//   - A timeline of 2^21 or more, or an LSN of 2^56 or more, becomes a mark: Wrote
//     for a write, SeenPrimary for a floor.
//
// # Text form
//
// For maintainers; everybody else treats it as opaque. The text is "r1." and the
// payload in base64url without padding, about 45 characters for one cluster and
// at most 957. A signed token is "r1.<payload>.<key id>.<MAC>", with a key id of 1
// to 16 characters and 43 of MAC, which is HMAC-SHA-256 in base64url of "gorm-ryw
// token", a zero byte and everything before the MAC's dot. Parse refuses it. A
// different payload gets a different version.
//
//	head     1 byte: bits 0-4 number of entries (1 to 16); bit 5 others, only
//	         with 16 entries; bits 6-7 zero
//	entries  in ascending order of (system, name), each of these parts in turn:
//	  flags     varint, one bit for each part or mark:
//	              0 system  1 name  2 write  3 floor on the timeline of write
//	              4 floor on another timeline, or without write  5 minted  6 wrote
//	              7 seen primary  8 seen nodes  9 former  10 broad covered
//	  system    8 bytes, not zero
//	  name      8 bytes, not zero
//	  write     timeline as varint (0: bare), LSN in 7 bytes, not zero
//	  former    the same, on an older timeline
//	  floor     bit 3: LSN minus that of write, as zigzag varint
//	            bit 4: timeline as varint, not zero, LSN in 7 bytes, not zero
//	  minted    varint, milliseconds since 1970, 1 to 2^42-1
//	  nodes     1 byte number (1 to 8), 8 bytes each, ascending, not zero
//
// Fixed numbers are big-endian; varints are those of encoding/binary, in the
// shortest form. The text is canonical: Parse refuses whatever String does not
// make, so equal tokens have equal texts and there is one text to sign. An entry
// without any part but its key exists only beside others.
package token
