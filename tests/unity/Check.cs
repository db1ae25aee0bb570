// Reads every golden payload, and prints what it reads. docs/protocol.md has the command that builds it.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text.RegularExpressions;
using Eyestream;

static class Check
{
    /// <summary>A value, elements of arrays between tabs.</summary>
    static string Plain(object value)
    {
        if (value is bool) return "true";
        var list = value as Array;
        if (list == null) return string.Format(CultureInfo.InvariantCulture, value is double ? "{0:R}" : "{0}", value);
        var words = new List<string>();
        foreach (object one in list)
            words.Add(string.Format(CultureInfo.InvariantCulture, one is float || one is double ? "{0:R}" : "{0}", one));
        return string.Join("\t", words.ToArray());
    }

    /// <summary>Of what a sidecar compares with its configuration: schema 7, three features, gaze of 2 or 3.</summary>
    static void Configured(string kind, Dictionary<string, object> message)
    {
        if (kind != "raw" && kind != "gaze") return;
        ulong columns = ((ulong[])message["shape"])[1];
        Refused.Unless((ulong)message["schema"] == 7, "schema");
        Refused.Unless(columns == 3 || (kind == "gaze" && columns == 2), "shape");
    }

    static int Main(string[] words)
    {
        string index = File.ReadAllText(Path.Combine(words[0], "index.json")); // written by us: no parser is needed
        var entries = new Regex("\"([\\w-]+\\.msgpack)\": \\{\\s+\"kind\": \"(\\w+)\"(?:(?!\\.msgpack).)*?"
            + "(?:\"refused\": \"(\\w+)\"|\"holds\")", RegexOptions.Singleline);
        int payloads = 0, faults = 0;
        foreach (Match entry in entries.Matches(index))
        {
            string name = entry.Groups[1].Value, kind = entry.Groups[2].Value, refused = "";
            var line = new List<string> { name };
            try
            {
                var message = Payload.Decode(kind, File.ReadAllBytes(Path.Combine(words[0], name)));
                Configured(kind, message);
                foreach (var part in message)
                {
                    line.Add(part.Key);
                    string shown = Plain(part.Value);
                    if (!(part.Value is Array) || ((Array)part.Value).Length > 0) line.Add(shown);
                }
            }
            catch (Refused refusal)
            {
                refused = refusal.Message;
                line.Add("refused\t" + refused);
            }
            if (refused != entry.Groups[3].Value) line.Add("FAULT");
            faults += refused != entry.Groups[3].Value ? 1 : 0;
            payloads++;
            Console.WriteLine(string.Join("\t", line.ToArray()));
        }
        Console.Error.WriteLine(payloads + " payloads, " + faults + " faults");
        return faults > 0 || payloads == 0 ? 1 : 0;
    }
}
