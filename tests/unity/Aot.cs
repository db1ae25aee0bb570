// Decodes every golden payload, and hands chunks through a feed: under `mono --full-aot` nothing is compiled at run time,
// as on a device with IL2CPP.

using System;
using Eyestream;
using Eyestream.Tests;

static class Aot
{
    static void Main()
    {
        int read = 0, refused = 0, faults = 0, chunks = 0, others = 0;
        for (int i = 0; i < Golden.Payloads.GetLength(0); i++)
        {
            string kind = Golden.Payloads[i, 1], expected = Golden.Payloads[i, 2], found = "";
            try { Payload.Decode(kind, Convert.FromBase64String(Golden.Payloads[i, 3])); }
            catch (Refused refusal) { found = refusal.Message; }
            bool compared = expected == "schema" || expected == "shape"; // with a configuration, which is not here
            if (found != expected && !(compared && found.Length == 0)) faults++;
            if (found.Length == 0) read++;
            else refused++;
        }
        var feed = new Feed(null, "hmd-1", "features", "s1");
        feed.OnChunk += chunk => chunks += chunk.Rows;
        feed.OnStatus += status => others++;
        feed.OnBudget += budget => others++;
        feed.OnDescribed += description => others++;
        feed.Linked();
        for (int i = 0; i < Golden.Payloads.GetLength(0); i++)
            foreach (string name in new[] { "meta", "status", "budget", "private" })
                if (Golden.Payloads[i, 0] == name)
                    feed.Message("eyestream/v1/hmd-1/features/" + name, Convert.FromBase64String(Golden.Payloads[i, 3]), false);
        feed.Pump();
        Console.WriteLine(read + " read, " + refused + " refused, " + faults + " faults; " + chunks + " rows, " + others + " other events");
    }
}
